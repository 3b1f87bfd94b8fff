package sarif

import "strings"

// classes groups CWEs under the names that people filter by.
var classes = map[string]string{
	"CWE-22": "Path Traversal", "CWE-23": "Path Traversal", "CWE-35": "Path Traversal", "CWE-73": "Path Traversal",
	"CWE-77": "Command Injection", "CWE-78": "Command Injection", "CWE-88": "Command Injection",
	"CWE-79": "Cross-Site-Scripting (XSS)", "CWE-80": "Cross-Site-Scripting (XSS)", "CWE-116": "Improper Encoding",
	"CWE-89": "SQL Injection", "CWE-564": "SQL Injection", "CWE-943": "NoSQL Injection", "CWE-90": "LDAP Injection",
	"CWE-643": "XPath Injection", "CWE-91": "XML Injection", "CWE-611": "XML Injection", "CWE-776": "XML Injection",
	"CWE-94": "Code Injection", "CWE-95": "Code Injection", "CWE-96": "Code Injection", "CWE-1336": "Code Injection",
	"CWE-20": "Improper Validation", "CWE-295": "Improper Validation", "CWE-345": "Improper Validation",
	"CWE-119": "Memory Issues", "CWE-120": "Memory Issues", "CWE-121": "Memory Issues", "CWE-122": "Memory Issues",
	"CWE-125": "Memory Issues", "CWE-190": "Memory Issues", "CWE-415": "Memory Issues", "CWE-416": "Memory Issues",
	"CWE-476": "Memory Issues", "CWE-787": "Memory Issues", "CWE-134": "Memory Issues",
	"CWE-200": "Mishandled Sensitive Information", "CWE-209": "Mishandled Sensitive Information",
	"CWE-312": "Mishandled Sensitive Information", "CWE-319": "Mishandled Sensitive Information",
	"CWE-532": "Mishandled Sensitive Information", "CWE-311": "Mishandled Sensitive Information",
	"CWE-259": "Hard-coded Secrets", "CWE-321": "Hard-coded Secrets", "CWE-798": "Hard-coded Secrets",
	"CWE-284": "Improper Authorization", "CWE-285": "Improper Authorization", "CWE-639": "Improper Authorization",
	"CWE-862": "Improper Authorization", "CWE-863": "Improper Authorization", "CWE-276": "Improper Authorization",
	"CWE-269": "Improper Authorization", "CWE-732": "Improper Authorization",
	"CWE-287": "Improper Authentication", "CWE-306": "Improper Authentication", "CWE-384": "Improper Authentication",
	"CWE-326": "Cryptographic Issues", "CWE-327": "Cryptographic Issues", "CWE-330": "Cryptographic Issues",
	"CWE-338": "Cryptographic Issues", "CWE-347": "Cryptographic Issues", "CWE-310": "Cryptographic Issues",
	"CWE-328": "Insecure Hashing Algorithm", "CWE-916": "Insecure Hashing Algorithm",
	"CWE-352": "Cross-Site Request Forgery (CSRF)", "CWE-918": "Server-Side Request Forgery (SSRF)", "CWE-601": "Open Redirect",
	"CWE-502": "Insecure Deserialization", "CWE-915": "Mass Assignment", "CWE-1321": "Mass Assignment",
	"CWE-400": "Denial-of-Service (DoS)", "CWE-770": "Denial-of-Service (DoS)", "CWE-1333": "Denial-of-Service (DoS)",
	"CWE-362": "Race Condition", "CWE-367": "Race Condition", "CWE-489": "Active Debug Code",
	"CWE-614": "Cookie Security", "CWE-1004": "Cookie Security", "CWE-1275": "Cookie Security",
	"CWE-242": "Dangerous Method or Function", "CWE-676": "Dangerous Method or Function", "CWE-749": "Dangerous Method or Function",
}

// VulnerabilityClasses derives the classes from the CWEs, because many tools write none.
func VulnerabilityClasses(cwes []string) []string {
	var names []string
	for _, name := range cwes {
		id, _, _ := strings.Cut(name, ":")
		names = append(names, classes[id])
	}
	return distinct(names)
}
