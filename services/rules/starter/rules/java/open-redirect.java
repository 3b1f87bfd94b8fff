import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

class Redirects {
    void next(HttpServletRequest request, HttpServletResponse response) throws Exception {
        // ruleid: palisade.java.open-redirect
        response.sendRedirect(request.getParameter("next"));
        // ruleid: palisade.java.open-redirect
        response.sendRedirect("/" + request.getParameter("next"));
        // ok: palisade.java.open-redirect
        response.sendRedirect("/");
        // ok: palisade.java.open-redirect
        response.sendRedirect("/items/" + request.getParameter("id"));
        // ok: palisade.java.open-redirect
        response.sendRedirect("https://login.acme.test/?next=" + request.getParameter("next"));
    }
}
