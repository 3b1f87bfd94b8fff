package formats

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// sonarGeneric is the generic issue import format of SonarQube, with rules (10.3 and later) or without.
var sonarGeneric = Format{Name: "sonarqube-generic", Title: "SonarQube generic issues", Convert: convertSonar, Recognises: func(o *Outline) bool {
	return o.Has("issues[].primaryLocation") || o.Has("issues") && o.Has("rules[].engineId")
}}

// maxEngines bounds the tools of a report, because it is read once for each. sonarUnnamed is the tool of a report that
// names none.
const (
	maxEngines   = 32
	sonarUnnamed = "SonarQube generic issues"
)

type sonarRule struct {
	ID          string                       `json:"id"`
	Name        string                       `json:"name"`
	Description string                       `json:"description"`
	Engine      string                       `json:"engineId"`
	Type        string                       `json:"type"`
	Severity    string                       `json:"severity"`
	Impacts     jsonstream.List[sonarImpact] `json:"impacts"`
}

type sonarImpact struct {
	Quality  string `json:"softwareQuality"`
	Severity string `json:"severity"`
}

type sonarIssue struct {
	Engine    string                         `json:"engineId"`
	Rule      string                         `json:"ruleId"`
	Severity  string                         `json:"severity"`
	Type      string                         `json:"type"`
	Primary   sonarLocation                  `json:"primaryLocation"`
	Secondary jsonstream.List[sonarLocation] `json:"secondaryLocations"`
}

type sonarLocation struct {
	Message string `json:"message"`
	Path    string `json:"filePath"`
	Range   struct {
		StartLine jsonstream.Integer  `json:"startLine"`
		EndLine   jsonstream.Integer  `json:"endLine"`
		Start     *jsonstream.Integer `json:"startColumn"`
		End       *jsonstream.Integer `json:"endColumn"`
	} `json:"textRange"`
}

type sonarReport struct {
	w       *Writer
	rules   map[string]*sonarRule
	bytes   int
	engines []string
}

func convertSonar(in *Input, w *Writer) error {
	r := &sonarReport{w: w, rules: map[string]*sonarRule{}}
	if err := in.Walk(r.head); err != nil {
		return err
	}
	if len(r.engines) == 0 {
		w.Run(Tool{Name: sonarUnnamed})
		w.Warn("the report names no tool (engineId), so it closes no findings of other reports")
	}
	for n, engine := range r.engines {
		w.Run(Tool{Name: engine})
		err := in.Walk(func(s *jsonstream.Stream) error {
			return report(s, w, members{"issues": list(w, func(s *jsonstream.Stream, _ int) error { return r.issue(s, n) })}, "issues")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// head reads the rules and the names of the tools.
func (r *sonarReport) head(s *jsonstream.Stream) error {
	var used []string // by issues, which may be before the rules
	err := object(s, members{
		"rules": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(int) error {
				rule := &sonarRule{}
				err := into(rule)(s)
				if r.bytes += len(rule.Description) + len(rule.Name) + 200; r.bytes > maxRuleBytes {
					rule.Name, rule.Description = "", ""
				}
				if rule.ID != "" && len(r.rules) < maxRules {
					r.rules[rule.ID] = rule
					used = addEngine(used, rule.Engine)
				}
				return err
			})
			return err
		},
		"issues": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(int) error {
				var engine, rule string
				err := object(s, members{"engineId": into(&engine), "ruleId": into(&rule)})
				used = addEngine(used, engine)
				return err
			})
			return err
		},
	})
	r.engines = used
	return err
}

// addEngine adds the name of a tool, once.
func addEngine(names []string, name string) []string {
	if name = strings.TrimSpace(name); name == "" || len(names) >= maxEngines || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// issue reads an issue if it belongs to the n-th tool. The first tool also gets what belongs to none.
func (r *sonarReport) issue(s *jsonstream.Stream, n int) error {
	var i sonarIssue
	var fixes []jsonstream.Fix
	problem, err := s.Decode(&i, func(f jsonstream.Fix) { fixes = append(fixes, f) })
	if err != nil {
		return err
	}
	rule := cmp.Or(r.rules[i.Rule], &sonarRule{})
	engine := slices.Index(r.engines, strings.TrimSpace(cmp.Or(i.Engine, rule.Engine)))
	switch {
	case max(engine, 0) != n:
		return nil
	case problem == "" && engine < 0:
		problem = "names no tool (engineId), or one of too many"
	}
	if problem != "" {
		r.w.Unreadable(s.Pointer(), problem)
		return nil
	}
	for _, fix := range fixes {
		r.w.Fixed(s.Pointer(), fix)
	}
	return r.w.Result(i.result(rule))
}

func (i *sonarIssue) result(rule *sonarRule) *Result {
	at := &i.Primary
	r := &Result{
		Rule:    Rule{ID: i.Rule, Name: rule.Name, Message: rule.Name, Description: rule.Description},
		Message: at.Message, Severity: cmp.Or(i.Severity, rule.severity()), Path: at.Path,
		Line: int(at.Range.StartLine), EndLine: int(at.Range.EndLine), Column: at.column(), EndColumn: columnFrom0(at.Range.End),
	}
	switch strings.ToUpper(cmp.Or(i.Type, rule.Type)) {
	case "VULNERABILITY", "SECURITY_HOTSPOT":
		r.Rule.Tags = append(r.Rule.Tags, "security")
	case "BUG":
		r.Rule.Tags = append(r.Rule.Tags, "correctness")
	case "CODE_SMELL":
		r.Rule.Tags = append(r.Rule.Tags, "maintainability")
	}
	for _, impact := range rule.Impacts {
		r.Rule.Tags = append(r.Rule.Tags, strings.ToLower(impact.Quality))
	}
	for _, other := range i.Secondary {
		r.Related = append(r.Related, Place{
			Path: other.Path, Line: int(other.Range.StartLine), Column: other.column(), Message: other.Message,
		})
	}
	return r
}

// severity is the one of the impact on security, or else of the first impact.
func (r *sonarRule) severity() string {
	first := ""
	for _, impact := range r.Impacts {
		if strings.EqualFold(impact.Quality, "SECURITY") {
			return impact.Severity
		}
		first = cmp.Or(first, impact.Severity)
	}
	return cmp.Or(first, r.Severity)
}

func (l *sonarLocation) column() int { return columnFrom0(l.Range.Start) }

// columnFrom0 converts a column that is counted from 0, which may be absent.
func columnFrom0(n *jsonstream.Integer) int {
	if n == nil || *n < 0 {
		return 0
	}
	return int(*n) + 1
}
