fun ciphers() {
    // ruleid: palisade.kotlin.weak-cipher
    Cipher.getInstance("AES/ECB/PKCS5Padding")
    // ruleid: palisade.kotlin.weak-cipher
    Cipher.getInstance("DESede/CBC/PKCS5Padding")
    // ok: palisade.kotlin.weak-cipher
    Cipher.getInstance("AES/GCM/NoPadding")
    // ok: palisade.kotlin.weak-cipher
    Cipher.getInstance("RSA/ECB/OAEPWithSHA-256AndMGF1Padding")
    // ok: palisade.kotlin.weak-cipher
    Cipher.getInstance("ChaCha20-Poly1305")
}
