import java.net.URL;
import javax.servlet.http.HttpServletRequest;

class Fetch {
    void fetch(HttpServletRequest request) throws Exception {
        // ruleid: palisade.java.ssrf
        new URL(request.getParameter("url"));
        // ruleid: palisade.java.ssrf
        new URL("https://" + request.getParameter("host") + "/status");
        // ok: palisade.java.ssrf
        new URL("https://api.acme.test/status");
        // ok: palisade.java.ssrf
        new URL("https://api.acme.test/users/" + request.getParameter("id"));
    }
}
