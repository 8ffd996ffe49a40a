"""Templates of the configuration."""


def filled(template: str, question: str, context: str | None, answer: str) -> str:
    """`template` with its fields filled in; a missing context is empty.

    White space at both ends is dropped, so a template may begin with `{context}`.
    """
    return template.format(question=question, context=context or "", answer=answer).strip()
