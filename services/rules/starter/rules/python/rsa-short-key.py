from Crypto.PublicKey import RSA
from cryptography.hazmat.primitives.asymmetric import rsa


def keys(bits):
    # ruleid: palisade.python.rsa-short-key
    rsa.generate_private_key(public_exponent=65537, key_size=1024)
    # ruleid: palisade.python.rsa-short-key
    RSA.generate(1024)
    # ok: palisade.python.rsa-short-key
    rsa.generate_private_key(public_exponent=65537, key_size=3072)
    # ok: palisade.python.rsa-short-key
    RSA.generate(bits)
    # ok: palisade.python.rsa-short-key
    RSA.generate(4096)
