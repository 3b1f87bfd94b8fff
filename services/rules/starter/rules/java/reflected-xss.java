import java.io.PrintWriter;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.owasp.encoder.Encode;

class Greeting {
    void greet(HttpServletRequest request, HttpServletResponse response) throws Exception {
        // ruleid: palisade.java.reflected-xss
        response.getWriter().println("Hello " + request.getParameter("name"));
        // ok: palisade.java.reflected-xss
        response.getWriter().println("Hello " + Encode.forHtml(request.getParameter("name")));
        // ok: palisade.java.reflected-xss
        response.getWriter().println(mapper.writeValueAsString(users.find(request.getParameter("name"))));
    }

    void greetTwice(HttpServletRequest request, HttpServletResponse response, PrintWriter log) throws Exception {
        PrintWriter out = response.getWriter();
        // ruleid: palisade.java.reflected-xss
        out.println("Hello " + request.getParameter("name"));
        // ok: palisade.java.reflected-xss
        log.println("Hello " + request.getParameter("name"));
    }

    void json(HttpServletRequest request, HttpServletResponse response) throws Exception {
        response.setContentType("application/json");
        // ok: palisade.java.reflected-xss
        response.getWriter().write("{\"name\":\"" + request.getParameter("name") + "\"}");
    }
}
