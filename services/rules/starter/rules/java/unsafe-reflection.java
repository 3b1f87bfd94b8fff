import java.util.Map;
import javax.servlet.http.HttpServletRequest;

class Handlers {
    void load(HttpServletRequest request, Map<String, String> known) throws Exception {
        // ruleid: palisade.java.unsafe-reflection
        Class.forName(request.getParameter("handler"));
        // ok: palisade.java.unsafe-reflection
        Class.forName("com.acme.Handler");
        // ok: palisade.java.unsafe-reflection
        Class.forName(known.get(request.getParameter("handler")));
    }
}
