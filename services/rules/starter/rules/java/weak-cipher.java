import javax.crypto.Cipher;

class Ciphers {
    void ciphers() throws Exception {
        // ruleid: palisade.java.weak-cipher
        Cipher.getInstance("AES/ECB/PKCS5Padding");
        // ruleid: palisade.java.weak-cipher
        Cipher.getInstance("DESede/CBC/PKCS5Padding");
        // ruleid: palisade.java.weak-cipher
        Cipher.getInstance("AES");
        // ok: palisade.java.weak-cipher
        Cipher.getInstance("AES/GCM/NoPadding");
        // ok: palisade.java.weak-cipher
        Cipher.getInstance("RSA/None/OAEPWithSHA-256AndMGF1Padding");
        // ok: palisade.java.weak-cipher
        Cipher.getInstance("ChaCha20-Poly1305");
    }
}
