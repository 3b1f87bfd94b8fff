fun connect(builder: OkHttpClient.Builder, verifier: HostnameVerifier) {
    // ruleid: palisade.kotlin.tls-verification-off
    builder.hostnameVerifier { host, session -> true }
    // ruleid: palisade.kotlin.tls-verification-off
    val trust = InsecureTrustManagerFactory.INSTANCE
    // ok: palisade.kotlin.tls-verification-off
    builder.hostnameVerifier(verifier)
    // ok: palisade.kotlin.tls-verification-off
    builder.hostnameVerifier { host, session -> host.endsWith(".acme.test") }
    // ok: palisade.kotlin.tls-verification-off
    builder.hostnameVerifier { host, session -> false }
}
