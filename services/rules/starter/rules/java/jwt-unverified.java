import com.auth0.jwt.JWT;
import com.auth0.jwt.algorithms.Algorithm;

class Tokens {
    void read(String token) {
        // ruleid: palisade.java.jwt-unverified
        JWT.decode(token);
        // ruleid: palisade.java.jwt-unverified
        JWT.require(Algorithm.none());
        // ok: palisade.java.jwt-unverified
        JWT.require(Algorithm.RSA256(null, null)).build().verify(token);
    }

    void refuse(Algorithm algorithm) {
        // ok: palisade.java.jwt-unverified
        if (algorithm.equals(Algorithm.none())) {
            throw new IllegalArgumentException("tokens need a signature");
        }
    }

    void readKeyFirst(String token, Verifiers verifiers) {
        // ok: palisade.java.jwt-unverified
        String key = JWT.decode(token).getKeyId();
        verifiers.of(key).verify(token);
    }
}
