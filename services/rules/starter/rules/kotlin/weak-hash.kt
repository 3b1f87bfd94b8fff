fun digests(algorithm: String) {
    // ruleid: palisade.kotlin.weak-hash
    MessageDigest.getInstance("MD5")
    // ruleid: palisade.kotlin.weak-hash
    MessageDigest.getInstance("SHA-1")
    // ok: palisade.kotlin.weak-hash
    MessageDigest.getInstance("SHA-256")
    // ok: palisade.kotlin.weak-hash
    MessageDigest.getInstance(algorithm)
}
