from fastapi.middleware.cors import CORSMiddleware


def share(app):
    # ruleid: palisade.python.cors-any-origin
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=True)
    # ok: palisade.python.cors-any-origin
    app.add_middleware(CORSMiddleware, allow_origins=["https://app.acme.test"], allow_credentials=True)
    # ok: palisade.python.cors-any-origin
    app.add_middleware(CORSMiddleware, allow_origins=["*"])
    # ok: palisade.python.cors-any-origin
    app.add_middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=False)
