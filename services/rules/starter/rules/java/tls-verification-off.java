import java.security.cert.X509Certificate;
import javax.net.ssl.HostnameVerifier;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.X509TrustManager;

class Connections {
    void connect(HttpsURLConnection connection, HostnameVerifier verifier) {
        // ruleid: palisade.java.tls-verification-off
        connection.setHostnameVerifier((host, session) -> true);
        // ok: palisade.java.tls-verification-off
        connection.setHostnameVerifier(verifier);
        // ok: palisade.java.tls-verification-off
        connection.setHostnameVerifier((host, session) -> host.endsWith(".acme.test"));
    }

    static class TrustEverything implements X509TrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        // ruleid: palisade.java.tls-verification-off
        public void checkServerTrusted(X509Certificate[] chain, String type) {}

        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }

    static class TrustSome implements X509TrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String type) {}

        // ok: palisade.java.tls-verification-off
        public void checkServerTrusted(X509Certificate[] chain, String type) {
            Pins.check(chain);
        }

        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
