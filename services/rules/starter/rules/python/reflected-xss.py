import json

from django.http import HttpResponse, JsonResponse
from django.utils.html import escape


def greet(request):
    # ruleid: palisade.python.reflected-xss
    HttpResponse("Hello " + request.GET["name"])
    # ruleid: palisade.python.reflected-xss
    HttpResponse(f"<p>Hello {request.GET.get('name')}</p>")
    # ok: palisade.python.reflected-xss
    HttpResponse("Hello " + escape(request.GET["name"]))
    # ok: palisade.python.reflected-xss
    HttpResponse(json.dumps({"name": request.GET["name"]}), content_type="application/json")
    # ok: palisade.python.reflected-xss
    JsonResponse({"name": request.GET["name"]})
