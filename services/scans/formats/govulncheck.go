package formats

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// govulncheckJSON is the output of `govulncheck -json`: messages in a row. Some users collect them in a list.
var govulncheckJSON = Format{
	Name: "govulncheck-json", Title: "govulncheck JSON", Convert: convertGovulncheck, Recognises: func(o *Outline) bool {
		return o.Has("config.protocol_version") || o.Has("[].config.protocol_version") ||
			o.Value("config.scanner_name") == "govulncheck" || o.Value("[].config.scanner_name") == "govulncheck"
	},
}

type govulncheckConfig struct {
	Version string `json:"scanner_version"`
	Level   string `json:"scan_level"`
	Mode    string `json:"scan_mode"`
}

type govulncheckFrame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"`
	Receiver string `json:"receiver"`
	Position struct {
		File   string             `json:"filename"`
		Line   jsonstream.Integer `json:"line"`
		Column jsonstream.Integer `json:"column"`
	} `json:"position"`
}

// govulncheckFinding is one place of a vulnerability. Its trace begins with the vulnerable module, package or function,
// and ends in the code of the user.
type govulncheckFinding struct {
	OSV   string                            `json:"osv"`
	Fixed string                            `json:"fixed_version"`
	Trace jsonstream.List[govulncheckFrame] `json:"trace"`
}

// precision is 2 for a called function, 1 for an imported package, 0 for a required module.
func (f *govulncheckFinding) precision() int {
	switch {
	case f.Trace[0].Function != "":
		return 2
	case f.Trace[0].Package != "":
		return 1
	}
	return 0
}

// govulncheckGroup has the findings of a vulnerability in a module that are the most precise.
type govulncheckGroup struct {
	precision int
	first     govulncheckFinding
	packages  map[string]bool
}

type govulncheckReport struct {
	in     *Input
	w      *Writer
	config govulncheckConfig
	// groups has the findings by vulnerability and module. Their number is bounded by [Input.keep].
	groups map[string]map[string]*govulncheckGroup
	loaded bool // the tool went on after its configuration
}

func convertGovulncheck(in *Input, w *Writer) error {
	r := &govulncheckReport{in: in, w: w, groups: map[string]map[string]*govulncheckGroup{}}
	if err := r.messages(members{"config": into(&r.config)}); err != nil {
		return err
	}
	w.Run(Tool{Name: "govulncheck", Version: r.config.Version, Product: ProductSCA})
	err := r.messages(members{
		"finding": func(s *jsonstream.Stream) error { r.loaded = true; return item(s, w, r.finding) },
		"osv":     func(s *jsonstream.Stream) error { r.loaded = true; return s.Skip() },
		"progress": func(s *jsonstream.Stream) error {
			var p struct {
				Message string `json:"message"`
			}
			err := into(&p)(s)
			r.loaded = r.loaded || p.Message != "" && !strings.HasPrefix(p.Message, "Fetching")
			return err
		},
	})
	if err != nil {
		return err
	}
	if !r.loaded {
		w.Fail("govulncheck ended before it checked anything")
	}
	// The description of a vulnerability may follow its findings, so a group is written at its description.
	err = r.messages(members{"osv": func(s *jsonstream.Stream) error {
		var v osvVulnerability
		if err := into(&v)(s); err != nil {
			return err
		}
		return r.write(&v)
	}})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(r.groups)) {
		if err := r.write(&osvVulnerability{ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// messages reads the known members of all messages.
func (r *govulncheckReport) messages(known members) error {
	return r.in.WalkAll(func(s *jsonstream.Stream) error {
		if s.Kind() != '[' {
			return object(s, known)
		}
		return s.Array(func(int) error { return object(s, known) })
	})
}

// finding adds a finding to its group, if it is at least as precise as the others there.
func (r *govulncheckReport) finding(f *govulncheckFinding) error {
	if f.OSV == "" || len(f.Trace) == 0 {
		r.w.Unreadable(r.w.at, "has no vulnerability or no trace")
		return nil
	}
	modules := r.groups[f.OSV]
	if modules == nil {
		modules = map[string]*govulncheckGroup{}
		r.groups[f.OSV] = modules
	}
	top := &f.Trace[0]
	group := modules[top.Module]
	if group == nil || group.precision < f.precision() {
		f.Trace = slices.Clone(f.Trace[:min(len(f.Trace), 50)])
		size := 0
		for i := range f.Trace {
			size += 300 + len(f.Trace[i].Package)
		}
		if err := r.in.keep(size); err != nil {
			return err
		}
		group = &govulncheckGroup{precision: f.precision(), first: *f, packages: map[string]bool{}}
		modules[top.Module] = group
	}
	if name := cmp.Or(top.Package, top.Module); group.precision == f.precision() && !group.packages[name] {
		group.packages[name] = true
		return r.in.keep(len(name))
	}
	return nil
}

// write writes the results of a vulnerability.
func (r *govulncheckReport) write(v *osvVulnerability) error {
	modules := r.groups[v.ID]
	delete(r.groups, v.ID)
	if v.Withdrawn != "" {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		group := modules[name]
		severity, score := v.severity()
		if score == "" {
			severity = cmp.Or(severity, r.severity(group.precision))
		}
		out := &Result{
			Rule: Rule{
				ID: v.ID, Message: cmp.Or(v.Summary, v.Details), Description: v.Details, HelpURI: "https://pkg.go.dev/vuln/" + v.ID,
				Tags: v.Aliases, CWE: v.Database.CWE, References: v.pages(),
			},
			Message: r.message(group), Severity: severity, Score: score, Path: "go.mod", Logical: name, Flow: group.flow(),
			Package: &Package{
				Name: name, Version: strings.TrimPrefix(group.first.Trace[0].Version, "v"), Ecosystem: "go", Advisory: cveOf(v.ID, v.Aliases),
			},
		}
		if r.config.Mode == "binary" {
			out.Path = ""
		}
		if fixed := strings.TrimPrefix(group.first.Fixed, "v"); fixed != "" {
			out.Package.Fixed = []string{fixed}
		}
		if err := r.w.Result(out); err != nil {
			return err
		}
	}
	return nil
}

// severity is what the levels of govulncheck's SARIF report mean: it is high only for what the scan looked for.
func (r *govulncheckReport) severity(precision int) string {
	wanted := map[string]int{"symbol": 2, "package": 1}[r.config.Level]
	switch {
	case precision >= wanted:
		return "high"
	case precision == wanted-1:
		return "medium"
	}
	return "low"
}

// message is the one of govulncheck's SARIF report, so that changing the format changes no finding.
func (r *govulncheckReport) message(g *govulncheckGroup) string {
	names := slices.Sorted(maps.Keys(g.packages))
	one := map[bool]string{true: "", false: "s"}[len(names) == 1]
	text := strings.Join(names, ", ")
	if last := len(names) - 1; last > 0 {
		text = strings.Join(names[:last], ", ") + map[bool]string{true: " and ", false: ", and "}[last == 1] + names[last]
	}
	const further = ". Run the call-level analysis to understand whether your code actually calls the vulnerabilities."
	switch {
	case g.precision == 2:
		return fmt.Sprintf("Your code calls vulnerable functions in %d package%s (%s).", len(names), one, text)
	case g.precision == 1 && r.config.Level == "symbol":
		return fmt.Sprintf("Your code imports %d vulnerable package%s (%s), but doesn’t appear to call any of the vulnerable symbols.",
			len(names), one, text)
	case g.precision == 1:
		return fmt.Sprintf("Your code imports %d vulnerable package%s (%s)%s", len(names), one, text, further)
	case r.config.Level == "symbol" || r.config.Level == "package":
		verb := map[bool]string{true: "call", false: "import"}[r.config.Level == "symbol"]
		return fmt.Sprintf("Your code depends on %d vulnerable module%s (%s), but doesn't appear to %s any of the vulnerable symbols.",
			len(names), one, text, verb)
	}
	return fmt.Sprintf("Your code depends on %d vulnerable module%s (%s)%s", len(names), one, text, further)
}

// flow is the call stack from the code of the user to the vulnerable function.
func (g *govulncheckGroup) flow() (places []Place) {
	if g.precision < 2 {
		return nil
	}
	own := g.first.Trace[len(g.first.Trace)-1].Module
	for _, f := range slices.Backward(g.first.Trace) {
		symbol, _, _ := strings.Cut(f.Function, "$")
		place := Place{
			Path: f.Position.File, Line: int(f.Position.Line), Column: int(f.Position.Column),
			Message: f.Package + "." + optionalText("", f.Receiver, ".") + symbol,
		}
		if f.Module != own && place.Path != "" {
			place.Path = f.Module + optionalText("@", f.Version, "") + "/" + place.Path
		}
		places = append(places, place)
	}
	return places
}
