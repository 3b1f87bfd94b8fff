import java.security.SecureRandom;
import java.util.Random;

class Values {
    void values(Random random, SecureRandom secure) {
        // ruleid: palisade.java.insecure-random
        int resetToken = random.nextInt(1000000);
        // ruleid: palisade.java.insecure-random
        double nonce = Math.random();
        // ok: palisade.java.insecure-random
        int sessionToken = secure.nextInt(1000000);
        // ok: palisade.java.insecure-random
        int footprint = random.nextInt(100);
        // ok: palisade.java.insecure-random
        int tokenCount = random.nextInt(100);
    }
}
