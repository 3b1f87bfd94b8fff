import flask
from django.http import HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.http import is_safe_url, url_has_allowed_host_and_scheme
from flask import request


def following():
    # ruleid: palisade.python.open-redirect
    flask.redirect(request.args["next"])
    # ruleid: palisade.python.open-redirect
    flask.redirect("/" + request.args["next"])
    # ok: palisade.python.open-redirect
    flask.redirect(flask.url_for("index"))
    # ok: palisade.python.open-redirect
    flask.redirect("/items/" + request.args["id"])
    # ok: palisade.python.open-redirect
    flask.redirect(f"/items/{request.args['id']}/edit")


def signed_in(request):
    target = request.GET["next"]
    if url_has_allowed_host_and_scheme(target, allowed_hosts={request.get_host()}):
        # ok: palisade.python.open-redirect
        return redirect(target)
    return redirect("index")


def signed_out(request):
    target = request.POST["next"]
    if not url_has_allowed_host_and_scheme(url=target, allowed_hosts=None):
        return redirect("index")
    # ok: palisade.python.open-redirect
    return HttpResponseRedirect(target)


def confirmed(request):
    target = request.GET.get("next")
    if target and is_safe_url(target, allowed_hosts={request.get_host()}):
        # ok: palisade.python.open-redirect
        return redirect(target)
    # ok: palisade.python.open-redirect
    return redirect("index")


def unchecked(request, other):
    target = request.GET["next"]
    if url_has_allowed_host_and_scheme(other, allowed_hosts=None):
        # ruleid: palisade.python.open-redirect
        return redirect(target)
