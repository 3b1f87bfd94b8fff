package services_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unguardedCalls are the functions, by package, that call another host without the guard of services/internal/egress,
// its address check, and its limits of time and size.
var unguardedCalls = map[string][]string{
	"net/http": {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"net": {
		"Dialer", "Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "LookupHost", "LookupIP", "LookupAddr", "LookupCNAME", "LookupMX",
		"LookupNS", "LookupSRV", "LookupTXT", "Resolver", "DefaultResolver",
	},
	"crypto/tls":             {"Dial", "DialWithDialer", "Dialer"},
	"net/smtp":               {"Dial", "SendMail"},
	"log/syslog":             {"Dial"},
	"google.golang.org/grpc": {"NewClient", "Dial", "DialContext"},
	// These create their own client.
	"github.com/slack-go/slack": {"New", "PostWebhook", "PostWebhookContext"},
}

// packageName finds the name of a package in its path: the last part that is not a version.
var packageName = regexp.MustCompile(`([^/]+)(?:/v[0-9]+)?$`)

// allowedUnguardedCalls are the exceptions, by file, with the reason.
var allowedUnguardedCalls = map[string]map[string]string{
	"notifications/channel/slack_app.go": {"slack.New": "gets the client of the guard as an option"},
	"notifications/slackapp/app.go":      {"slack.New": "gets the client of the guard as an option"},
	"doctor.go":                          {"http.DefaultClient": "asks the metrics port of this machine's own configuration whether the server runs, within doctorTimeout"},
}

// TestOutboundCallsUseTheGuard finds outbound calls that bypass the guard.
func TestOutboundCallsUseTheGuard(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(path string, files *token.FileSet, file *ast.File) {
		if strings.HasPrefix(path, "internal/egress/") || strings.HasPrefix(path, "internal/apitest/") || strings.HasSuffix(filepath.Dir(path), "test") ||
			strings.HasPrefix(path, "rules/starter/rules/") {
			return // the guard itself, test helpers, and bad examples for scanners
		}
		eachName(file, unguardedCalls, func(at token.Pos, name string, pointed bool) {
			if pointed && (name == "http.Client" || name == "http.Transport") {
				return // only the type of an existing client
			}
			used[path+" "+name] = true
			if allowedUnguardedCalls[path][name] == "" {
				t.Errorf("%s: %s goes around the guard: use egress.Guard's Client or Connect, or say in allowedUnguardedCalls why this one may not", files.Position(at), name)
			}
		})
	})
	for path, names := range allowedUnguardedCalls {
		for name := range names {
			if !used[path+" "+name] {
				t.Errorf("%s has no %s any more: take it out of allowedUnguardedCalls", path, name)
			}
		}
	}
}

// TestJobsAreBounded finds workers that could block their queue forever.
func TestJobsAreBounded(t *testing.T) {
	eachSource(t, func(path string, files *token.FileSet, file *ast.File) {
		if strings.HasPrefix(path, "internal/jobs/") {
			return
		}
		eachName(file, map[string][]string{"github.com/riverqueue/river": {"AddWorker", "AddWorkerArgs", "AddWorkerSafely", "AddWorkerArgsSafely"}}, func(at token.Pos, name string, _ bool) {
			t.Errorf("%s: %s makes a worker that nothing ends: use jobs.AddWorker", files.Position(at), name)
		})
	})
}

// eachSource visits the parsed files below this directory, without tests.
func eachSource(t *testing.T, visit func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	visited := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		visited++
		visit(filepath.ToSlash(path), files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if visited < 100 {
		t.Errorf("%d files were looked at, want all sources", visited)
	}
}

// eachName visits the uses of names of other packages; pointed is true for *name.
func eachName(file *ast.File, names map[string][]string, visit func(at token.Pos, name string, pointed bool)) {
	wanted := map[string]string{} // "alias.Name" to "package.Name"
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		base := packageName.FindStringSubmatch(path)[1]
		alias := base
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		for _, name := range names[path] {
			wanted[alias+"."+name] = base + "." + name
		}
	}
	pointed := map[ast.Expr]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			pointed[n.X] = true
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && wanted[pkg.Name+"."+n.Sel.Name] != "" {
				visit(n.Pos(), wanted[pkg.Name+"."+n.Sel.Name], pointed[n])
			}
		}
		return true
	})
}
