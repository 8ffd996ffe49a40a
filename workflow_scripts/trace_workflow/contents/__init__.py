"""What analyses, tables, figures and families of estimators are made from, as data."""
