from Crypto.Cipher import AES, DES
from cryptography.hazmat.primitives.ciphers import modes


def ciphers(key, nonce):
    # ruleid: palisade.python.weak-cipher
    DES.new(key, DES.MODE_CBC)
    # ruleid: palisade.python.weak-cipher
    AES.new(key, AES.MODE_ECB)
    # ruleid: palisade.python.weak-cipher
    modes.ECB()
    # ok: palisade.python.weak-cipher
    AES.new(key, AES.MODE_GCM)
    # ok: palisade.python.weak-cipher
    modes.GCM(nonce)
    # ok: palisade.python.weak-cipher
    AES.new(key, AES.MODE_EAX)
