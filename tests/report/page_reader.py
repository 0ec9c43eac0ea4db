"""Reads a page as a browser would take it apart."""

from html.parser import HTMLParser

LOADING = {"src", "srcset", "data", "action", "poster", "background", "formaction"}
"""Attributes that make a browser load something."""


class Reader(HTMLParser):
    """Refuses tags that do not close in order; keeps tags, ids, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] != "style":
            self.words += data + "\n"
