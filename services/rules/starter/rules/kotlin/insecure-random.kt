fun values(secure: SecureRandom) {
    // ruleid: palisade.kotlin.insecure-random
    val resetToken = Random.nextInt(1000000)
    // ruleid: palisade.kotlin.insecure-random
    val nonce = Math.random()
    // ok: palisade.kotlin.insecure-random
    val sessionToken = secure.nextInt(1000000)
    // ok: palisade.kotlin.insecure-random
    val footprint = Random.nextInt(100)
    // ok: palisade.kotlin.insecure-random
    val tokenCount = Random.nextInt(100)
}
