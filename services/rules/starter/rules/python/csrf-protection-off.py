from django.views.decorators.csrf import csrf_exempt, csrf_protect


# ruleid: palisade.python.csrf-protection-off
@csrf_exempt
def transfer(request):
    return None


# ok: palisade.python.csrf-protection-off
@csrf_protect
def settings(request):
    return None


# ok: palisade.python.csrf-protection-off
def index(request):
    return None
