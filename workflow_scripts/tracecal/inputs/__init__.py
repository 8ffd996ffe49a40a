"""What users give: files read within bounds, settings checked, templates filled in."""
