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

// Selection is what a scan asks for. Its zero value asks for every rule that is not off.
type Selection struct {
	// Products are sast, sca and secrets; empty means all.
	Products []string
	// PartialRuleIDs are the only rules to send; empty means all.
	PartialRuleIDs []string
	// ClientVersion is the scanner's, such as 1.97.0: rules whose min-version and max-version leave it out are not sent.
	// Empty: unknown, no rule is left out.
	ClientVersion string
	// Project is the name of the project; rules are the deployment's, so that it changes nothing yet.
	Project string
	// BaseURL is where people reach this server; it makes the URLs of rules. Empty: rules get none.
	BaseURL string
	// Language is the full name of a language whose rules are sent; empty means all.
	Language string
	// Origin is the origin whose rules are sent; empty means all.
	Origin string
}

// Document is what the scanner reads.
type Document struct {
	// JSON is {"rules":[…]}, with "rules" as its first key: scanners recognize the document by that.
	JSON []byte
	// Rules is how many there are.
	Rules int
	// Products that have a rule in the document, sorted.
	Products []string
	// Versions are the ids of the versions of the rules, by name.
	Versions map[string]int64
}

// Select chooses the rules of the deployment of ctx. Call EnsureStarter before, so that a new deployment has some.
func Select(ctx context.Context, reader *ent.Client, selection Selection) (Document, error) {
	all, err := load(ctx, reader, selection.BaseURL)
	if err != nil {
		return Document{}, err
	}
	only := map[string]bool{}
	for _, name := range selection.PartialRuleIDs {
		only[name] = true
	}
	client, _ := semver.NewVersion(selection.ClientVersion) // nil: unknown
	return assemble(all, func(r *rendered) bool {
		return r.mode != ModeOff && r.visibility != VisibilityUnlisted &&
			(len(selection.Products) == 0 || slices.Contains(selection.Products, r.product)) &&
			(len(only) == 0 || only[r.name]) &&
			(selection.Language == "" || slices.Contains(r.languages, selection.Language)) &&
			(selection.Origin == "" || selection.Origin == r.origin) &&
			r.runsOn(client)
	}), nil
}

// Named returns the rule of a name, whatever its mode and visibility. Where there is none, it returns the rules below
// the name that scans run: those of "python.flask" are named "python.flask.…" or "python.flask/…".
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
		return below && (rest[0] == '.' || rest[0] == '/') && r.mode != ModeOff && r.visibility != VisibilityUnlisted
	}), nil
}

// Version returns one version of a rule, whatever the mode and the visibility of the rule. It is NOT_FOUND (ent's) for
// one that is not there, or whose rule is not.
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

// rendered is a rule as a scanner gets it. It is shared and not changed.
type rendered struct {
	name, product, origin, mode, visibility string
	languages                               []string
	versionID                               int64
	// least and most bound the versions of scanners that can run the rule; nil: no bound.
	least, most *semver.Version
	json        []byte
}

// runsOn says whether a scanner can run the rule; nil is one whose version is not known.
func (r *rendered) runsOn(client *semver.Version) bool {
	if client == nil {
		return true
	}
	return (r.least == nil || !client.LessThan(r.least)) && (r.most == nil || !client.GreaterThan(r.most))
}

// policies are what modes are called in findings (contract: policy modes), and what findings cause. A rule that is off
// is sent only to those who ask for it by name.
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

func render(row *ent.RuleDocument, version *ent.RuleVersion, baseURL string) (*rendered, error) {
	out := &rendered{
		name: row.Name, product: row.Product, origin: row.Origin, mode: row.Mode, visibility: row.Visibility,
		languages: row.Languages, versionID: version.ID,
	}
	policy := policies[row.Mode]
	plant := document.Plant{
		Product: row.Product, Actions: policy.actions, RuleID: row.ID, VersionID: version.ID, Name: row.Name, Origin: row.Origin,
		PolicyID: policy.id, PolicyName: policy.name, PolicySlug: policy.slug, KeepValidityActions: row.Mode == ModeBlock,
	}
	if baseURL != "" {
		plant.URL = ruleURL(baseURL, row)
	}
	var err error
	if out.json, err = document.Planted(version.Document, plant); err != nil {
		return nil, err
	}
	var bounds struct {
		Least json.RawMessage `json:"min-version"`
		Most  json.RawMessage `json:"max-version"`
	}
	if err := json.Unmarshal(version.Document, &bounds); err != nil {
		return nil, err
	}
	out.least, out.most = bound(bounds.Least), bound(bounds.Most)
	return out, nil
}

// bound reads a version of scanners; nil where there is none.
func bound(raw json.RawMessage) *semver.Version {
	version, err := semver.NewVersion(strings.Trim(string(raw), `"`))
	if err != nil {
		return nil
	}
	return version
}
