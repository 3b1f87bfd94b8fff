class Credentials {
    // ruleid: palisade.java.hardcoded-credential
    private static final String DATABASE_PASSWORD = "k9Lw-battery-72";
    // ok: palisade.java.hardcoded-credential
    private static final String MAIL_PASSWORD = System.getenv("MAIL_PASSWORD");
    // ok: palisade.java.hardcoded-credential
    private static final String HEADER_API_KEY = "X-API-Key";
    // ok: palisade.java.hardcoded-credential
    private static final String PROPERTY_PASSWORD = "spring.datasource.password";
    // ok: palisade.java.hardcoded-credential
    private static final String SAMPLE_PASSWORD = "changeme-123";
}
