"""Files of pictures: SVG, or HTML around it; other formats are refused before the work."""

from __future__ import annotations

from pathlib import Path

from treelm.characters import visible
from treelm.corpus.files import Source
from treelm.errors import UsageError
from treelm.view.markup import escape

#: How the names of files with pictures end.
PICTURES = (".svg", ".html")
#: What rsvg-convert makes of an SVG file, and what else is a picture.
_BY_RSVG = (".png", ".pdf", ".eps", ".ps")
_OTHERS = (*_BY_RSVG, ".jpg", ".jpeg", ".gif", ".webp", ".tif", ".tiff", ".bmp")

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
{svg}
</body>
</html>
"""


def is_picture(path: Source) -> bool:
    """Return whether a file is named as a picture that treelm writes."""
    return Path(path).suffix.lower() in PICTURES


def check_picture(path: Source) -> None:
    """Refuse a file that is named as anything but SVG or HTML.

    Raises:
        UsageError: ``E_PICTURE_FORMAT``, with the way to the other format.
    """
    if not is_picture(path):
        suffix = Path(path).suffix.lower()
        what = f"{suffix} files are not written" if suffix else "the name does not tell the format"
        advice = ""
        if suffix in _OTHERS:
            advice = " Other programs convert SVG"
            advice += f": rsvg-convert -f {suffix[1:]} -o x{suffix} x.svg" * (suffix in _BY_RSVG)
            advice += "."
        raise UsageError(
            f"{visible(str(Path(path)))}: {what}. Pictures are SVG (.svg) or a page with it "
            f"(.html).{advice}",
            code="E_PICTURE_FORMAT",
        )


def check_picture_or_text(path: Source) -> None:
    """Refuse a file that is named as a picture of a format that is not written.

    Raises:
        UsageError: ``E_PICTURE_FORMAT``.
    """
    if Path(path).suffix.lower() in _OTHERS:
        check_picture(path)


def picture_content(path: Source, svg: str, title: str) -> bytes:
    """Return what a file of this name contains: the picture, or a page with it.

    Args:
        path: Name of the file.
        svg: The picture.
        title: What the page is called.

    Examples:
        >>> picture_content("x.svg", "<svg/>", "a boat")
        b'<svg/>'
        >>> b"<title>a boat</title>" in picture_content("x.html", "<svg/>", "a boat")
        True
    """
    if Path(path).suffix.lower() == ".html":
        return _PAGE.format(title=escape(title), svg=svg).encode()
    return svg.encode()
