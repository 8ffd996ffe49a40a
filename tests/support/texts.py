"""Answers in several scripts, and how a byte-level tokenizer may cut them."""

ANSWERS = [
    "The capital of France is Paris, on the Seine.",
    "12 + 30 = 42, so 42",
    "عاصمة فرنسا هي باريس على نهر السين.",
    "फ़्रांस की राजधानी पेरिस है, जो सीन नदी पर है।",
    "法国的首都是巴黎，位于塞纳河畔。",
    "Straße №5 — naïve café 👩‍🔬!",
]
