import java.security.MessageDigest;

class Digests {
    void digest(String algorithm) throws Exception {
        // ruleid: palisade.java.weak-hash
        MessageDigest.getInstance("MD5");
        // ruleid: palisade.java.weak-hash
        MessageDigest.getInstance("SHA-1");
        // ok: palisade.java.weak-hash
        MessageDigest.getInstance("SHA-256");
        // ok: palisade.java.weak-hash
        MessageDigest.getInstance(algorithm);
    }
}
