import java.io.File;
import java.io.FileInputStream;
import javax.servlet.http.HttpServletRequest;
import org.apache.commons.io.FilenameUtils;

class Reports {
    void open(HttpServletRequest request) throws Exception {
        // ruleid: palisade.java.path-traversal
        new File("/srv/reports", request.getParameter("name"));
        // ruleid: palisade.java.path-traversal
        new FileInputStream("/srv/reports/" + request.getParameter("name"));
        // ok: palisade.java.path-traversal
        new File("/srv/reports", FilenameUtils.getName(request.getParameter("name")));
        // ok: palisade.java.path-traversal
        new File("/srv/reports", "index.html");
    }
}
