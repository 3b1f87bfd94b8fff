package ruleset

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/rules/document"
)

// Selection selects the rules for a scan. The zero value selects all rules that are not off.
type Selection struct {
	// Products are sast, sca and secrets; empty means all.
	Products []string
	// PartialRuleIDs limits the selection to these rules; empty means all.
	PartialRuleIDs []string
	// ClientVersion is the scanner's version, such as 1.97.0. Rules with a min-version or max-version that excludes it are
	// left out. If it is empty, none are left out.
	ClientVersion string
	// Project is the project's name: it gets the modes of its rule boards, and its exceptions from detection policies.
	Project string
	// BaseURL is the server's public URL, used for the URLs of rules. If it is empty, rules have none.
	BaseURL string
	// Language is the full name of a language; empty means all.
	Language string
	// Origin is an origin of rules; empty means the rulesets of the detection policies.
	Origin string
	// Decided are rules from Decidable. Scanners get them without the action block.
	Decided []string
}

// Document is the scanner's input.
type Document struct {
	// JSON is {"rules":[…]}, with "rules" as its first key: scanners recognize the document by that.
	JSON []byte
	// Rules is the number of rules.
	Rules int
	// Products with a rule in the document, sorted.
	Products []string
	// Versions maps rule names to version ids.
	Versions map[string]int64
}

// Select selects the rules of the context's deployment. Call EnsureStarter first, so that a new deployment has rules.
func Select(ctx context.Context, reader *ent.Client, selection Selection) (Document, error) {
	all, err := selection.load(ctx, reader)
	if err != nil {
		return Document{}, err
	}
	if all, err = withoutBlock(all, selection.Decided); err != nil {
		return Document{}, err
	}
	return assemble(all, selection.filter()), nil
}

// load returns all rules in the modes that they have for the selection.
func (s Selection) load(ctx context.Context, reader *ent.Client) ([]*rendered, error) {
	all, err := load(ctx, reader, s.BaseURL)
	if err != nil || s.Origin != "" {
		return all, err
	}
	limits, err := scopeOf(ctx, reader, s.Project)
	if err != nil {
		return nil, err
	}
	return limits.apply(all)
}

// filter returns whether a rule is selected.
func (s Selection) filter() func(*rendered) bool {
	only := map[string]bool{}
	for _, name := range s.PartialRuleIDs {
		only[name] = true
	}
	client, _ := semver.NewVersion(s.ClientVersion) // nil: unknown
	return func(r *rendered) bool {
		return r.inScans() &&
			(len(s.Products) == 0 || slices.Contains(s.Products, r.product)) &&
			(len(only) == 0 || only[r.name]) &&
			(s.Language == "" || slices.Contains(r.languages, s.Language)) &&
			(s.Origin == "" || s.Origin == r.origin) &&
			r.runsOn(client)
	}
}

// Named returns the rule with a name, in any mode and visibility. If there is none, it returns the rules below the name
// that scans run: for "python.flask", the rules named "python.flask.…" or "python.flask/…".
func Named(ctx context.Context, reader *ent.Client, name, baseURL string) (Document, error) {
	all, err := load(ctx, reader, baseURL)
	if err != nil {
		return Document{}, err
	}
	if exact := assemble(all, func(r *rendered) bool { return r.name == name }); exact.Rules > 0 {
		return exact, nil
	}
	return assemble(all, func(r *rendered) bool {
		rest, below := strings.CutPrefix(r.name, name)
		return below && (rest[0] == '.' || rest[0] == '/') && r.inScans()
	}), nil
}

// Version returns one version of a rule, in any mode and visibility. It returns ent's not-found error if the version or
// its rule does not exist.
func Version(ctx context.Context, reader *ent.Client, id int64, baseURL string) (Document, error) {
	version, err := reader.RuleVersion.Get(ctx, id)
	if err != nil {
		return Document{}, err
	}
	row, err := reader.RuleDocument.Get(ctx, version.RuleDocumentID)
	if err != nil {
		return Document{}, err
	}
	one, err := render(row, version, baseURL)
	if err != nil {
		return Document{}, err
	}
	return assemble([]*rendered{one}, func(*rendered) bool { return true }), nil
}

func assemble(all []*rendered, wanted func(*rendered) bool) Document {
	var chosen []*rendered
	size := len(`{"rules":[]}`)
	for _, r := range all {
		if wanted(r) {
			chosen, size = append(chosen, r), size+len(r.json)+1
		}
	}
	out := Document{JSON: append(make([]byte, 0, size), `{"rules":[`...), Rules: len(chosen), Versions: make(map[string]int64, len(chosen))}
	for i, r := range chosen {
		if i > 0 {
			out.JSON = append(out.JSON, ',')
		}
		out.JSON = append(out.JSON, r.json...)
		out.Versions[r.name] = r.versionID
		if !slices.Contains(out.Products, r.product) {
			out.Products = append(out.Products, r.product)
		}
	}
	slices.Sort(out.Products)
	out.JSON = append(out.JSON, "]}"...)
	return out
}

// rendered is a rule in the scanner's form. It is shared and immutable.
type rendered struct {
	name, product, origin, mode, visibility string
	languages                               []string
	versionID                               int64
	version                                 int32
	storedAt                                int64 // of the version, in microseconds
	quarantined                             bool
	// minVersion and most are the scanner versions that can run the rule; nil: no bound.
	minVersion, maxVersion *semver.Version
	// annotation is what the server added to json. decidable says that the server can decide whether findings block.
	annotation document.Annotation
	decidable  bool
	json       []byte
	// source is the stored document of a rule with actions for valid and invalid secrets, which json may lack; nil for
	// other rules.
	source []byte
}

// inScans reports whether scans that do not name the rule get it.
func (r *rendered) inScans() bool {
	return r.mode != ModeOff && r.visibility != VisibilityUnlisted && !r.quarantined
}

// runsOn reports whether a scanner version can run the rule; nil is an unknown version.
func (r *rendered) runsOn(client *semver.Version) bool {
	if client == nil {
		return true
	}
	return (r.minVersion == nil || !client.LessThan(r.minVersion)) && (r.maxVersion == nil || !client.GreaterThan(r.maxVersion))
}

// policies maps modes to the policy names in findings (contract: policy modes) and to actions. A rule that is off is
// sent only if requested by name.
var policies = map[string]struct {
	id         int64
	name, slug string
	actions    []string
}{
	ModeMonitor: {1, "Monitor", "rule-board-audit", nil},
	ModeOff:     {1, "Monitor", "rule-board-audit", nil},
	ModeComment: {2, "Comment", "rule-board-pr-comments", []string{"comment"}},
	ModeBlock:   {3, "Block", "rule-board-block", []string{"block"}},
}

func setMode(of *document.Annotation, mode string) {
	policy := policies[mode]
	of.Actions, of.PolicyID, of.PolicyName, of.PolicySlug = policy.actions, policy.id, policy.name, policy.slug
	of.KeepValidityActions = mode == ModeBlock
}

func render(row *ent.RuleDocument, version *ent.RuleVersion, baseURL string) (*rendered, error) {
	out := &rendered{
		name: row.Name, product: row.Product, origin: row.Origin, mode: row.Mode, visibility: row.Visibility,
		languages: row.Languages, versionID: version.ID, version: version.Version, storedAt: version.CreatedAt,
		quarantined: isQuarantined(row),
	}
	out.annotation = document.Annotation{
		Product: row.Product, RuleID: row.ID, VersionID: version.ID, Name: row.Name, Origin: row.Origin,
	}
	setMode(&out.annotation, row.Mode)
	if baseURL != "" {
		out.annotation.URL = URL(baseURL, row)
	}
	var err error
	if out.json, err = document.Annotate(version.Document, out.annotation); err != nil {
		return nil, err
	}
	var bounds struct {
		Least json.RawMessage `json:"min-version"`
		Most  json.RawMessage `json:"max-version"`

		Metadata struct {
			Validity json.RawMessage `json:"dev.semgrep.validation_state.actions"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(version.Document, &bounds); err != nil {
		return nil, err
	}
	if bounds.Metadata.Validity != nil {
		out.source = version.Document
	}
	out.decidable = row.Mode == ModeBlock && out.source == nil
	out.minVersion, out.maxVersion = bound(bounds.Least), bound(bounds.Most)
	return out, nil
}

// bound parses a scanner version; nil if there is none.
func bound(raw json.RawMessage) *semver.Version {
	version, err := semver.NewVersion(strings.Trim(string(raw), `"`))
	if err != nil {
		return nil
	}
	return version
}
