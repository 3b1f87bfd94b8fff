import jinja2
from django.utils.safestring import mark_safe


def page(text):
    # ruleid: palisade.python.autoescape-off
    mark_safe(text)
    # ruleid: palisade.python.autoescape-off
    jinja2.Environment(autoescape=False)
    # ok: palisade.python.autoescape-off
    jinja2.Environment(autoescape=True)
    # ok: palisade.python.autoescape-off
    mark_safe("<hr>")
