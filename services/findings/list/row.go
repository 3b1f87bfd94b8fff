package list

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
)

// number and text are the types that lists scan columns into. NULL becomes the zero value. They are cheaper than
// pointers and the types of package sql.
type (
	number int64
	text   string
)

// Scan accepts a number or a boolean.
func (n *number) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*n = 0
	case int64:
		*n = number(v)
	case bool:
		*n = 0
		if v {
			*n = 1
		}
	default:
		return fmt.Errorf("a number is read as %T", value)
	}
	return nil
}

// Scan accepts a text.
func (t *text) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t = ""
	case string:
		*t = text(v)
	case []byte:
		*t = text(v)
	default:
		return fmt.Errorf("a text is read as %T", value)
	}
	return nil
}

// raw are bytes of the driver. They are valid until the next row.
type raw []byte

// Scan accepts bytes.
func (b *raw) Scan(value any) error {
	v, ok := value.([]byte)
	if !ok {
		return fmt.Errorf("bytes are read as %T", value)
	}
	*b = v
	return nil
}

// row holds the columns of a finding that lists read.
type row struct {
	id, projectID, ruleID, firstSeenScanID                         number
	createdAt, relevantSince, stateUpdatedAt, triagedAt, malicious number
	ref, severity, state, triageState, status                      string
	triageReason, triageComment, policyMode, exposure              text
	content                                                        raw
}

// rowColumns are the columns of a row, in the order of targets.
var rowColumns = finding.Table + "." + strings.Join([]string{
	finding.FieldID, finding.FieldProjectID, finding.FieldRuleID, finding.FieldFirstSeenScanID,
	finding.FieldCreatedAt, finding.FieldRelevantSince, finding.FieldStateUpdatedAt, finding.FieldTriagedAt,
	finding.FieldMalicious, finding.FieldRef, finding.FieldSeverity, finding.FieldState, finding.FieldTriageState,
	finding.FieldStatus, finding.FieldTriageReason, finding.FieldTriageComment, finding.FieldPolicyMode,
	finding.FieldExposure, finding.FieldContent,
}, ", "+finding.Table+".")

// targets returns the scan targets of rowColumns.
func (r *row) targets() []any {
	return []any{
		&r.id, &r.projectID, &r.ruleID, &r.firstSeenScanID,
		&r.createdAt, &r.relevantSince, &r.stateUpdatedAt, &r.triagedAt,
		&r.malicious, &r.ref, &r.severity, &r.state, &r.triageState,
		&r.status, &r.triageReason, &r.triageComment, &r.policyMode,
		&r.exposure, &r.content,
	}
}

// listed is a finding of a page. It holds the messages that each finding contains, and the fields that later steps
// need.
type listed struct {
	findingsv1.Finding
	location                                            findingsv1.FindingLocation
	createdAt, relevantSince, stateUpdatedAt, triagedAt timestamppb.Timestamp
	projectID, ruleID, since                            int64
	commit, logical                                     string
	// Of a dependency.
	lockfile     string
	lockfileLine int32
	committedAt  int64 // microseconds since 1970; 0 if unknown
}

// pageRows is one page of a list.
type pageRows struct {
	size     int // the maximum number of rows
	rows     []*listed
	free     []listed // allocated in slabs: one allocation for each finding costs as much as reading it
	contents blob.Page
	content  storev1.FindingContent
	revision int64  // the catalog revision in the snapshot of the rows
	cursor   string // the result of cursorStore.query
}

// slab is how many findings are allocated together.
const slab = 100

// add appends the finding of a row.
func (p *pageRows) add(issueType string, r *row) error {
	if len(p.free) == 0 {
		p.free = make([]listed, min(slab, p.size-len(p.rows)))
		p.rows = slices.Grow(p.rows, len(p.free))
	}
	f := &p.free[0]
	p.free = p.free[1:]
	p.content.Reset()
	p.content.Location = &f.location // never nil: clients index into it (contract facts 2.4)
	if err := p.contents.Decode(r.content, &p.content); err != nil {
		return fmt.Errorf("content of finding %d: %w", r.id, err)
	}
	f.projectID, f.ruleID = int64(r.projectID), int64(r.ruleID)
	f.since, f.commit = int64(r.relevantSince), p.content.Commit
	f.IssueType = issueType
	f.showRow(r)
	f.showContent(&p.content)
	p.rows = append(p.rows, f)
	return nil
}

// merge adds the rows of another page in the order of lists, and cuts the page to its size.
func (p *pageRows) merge(other *pageRows) {
	p.rows = append(p.rows, other.rows...)
	slices.SortFunc(p.rows, func(a, b *listed) int {
		return newerFirst(boundary{relevantSince: a.since, id: a.Id}, boundary{relevantSince: b.since, id: b.Id})
	})
	p.rows = p.rows[:min(len(p.rows), p.size)]
	p.revision = max(p.revision, other.revision)
}

// boundary returns the last row of the page, after which the next page begins.
func (p *pageRows) boundary() boundary {
	if len(p.rows) < p.size {
		return boundary{end: true}
	}
	last := p.rows[len(p.rows)-1]
	return boundary{relevantSince: last.since, id: last.Id}
}

// boards are the built-in policies, one for each mode. They source the findings of projects with the default rule
// board.
var boards = map[string]*findingsv1.PolicyReference{
	issuefilter.Monitored:    {Id: 1, Name: "Monitor", Slug: issuefilter.Monitored},
	"rule-board-pr-comments": {Id: 2, Name: "Comment", Slug: "rule-board-pr-comments"},
	"rule-board-block":       {Id: 3, Name: "Block", Slug: "rule-board-block"},
}

// reachabilities maps exposures to their words in findings (contract facts 3.11). Filters use other words.
var reachabilities = map[string]string{
	"reachable":               "reachable",
	"always_reachable":        "always reachable",
	"conditionally_reachable": "conditionally reachable",
	"unreachable":             "unreachable",
}

// unknownDependency is shown if the scan did not report the dependency.
var unknownDependency = &findingsv1.FoundDependency{Ecosystem: "no_package_manager", Transitivity: "unknown"}

// showRow sets the fields that come from columns.
func (f *listed) showRow(r *row) {
	f.Id, f.Ref, f.FirstSeenScanId, f.Severity = int64(r.id), r.ref, int64(r.firstSeenScanID), r.severity
	f.State, f.TriageState, f.Status = r.state, r.triageState, r.status
	f.TriageReason, f.TriageComment = string(r.triageReason), string(r.triageComment)
	f.CreatedAt = at(&f.createdAt, r.createdAt)
	f.RelevantSince = at(&f.relevantSince, r.relevantSince)
	f.StateUpdatedAt = at(&f.stateUpdatedAt, r.stateUpdatedAt)
	if r.triagedAt != 0 {
		f.TriagedAt = at(&f.triagedAt, r.triagedAt)
	}
	if f.IssueType != vocabulary.SCA {
		f.SourcingPolicy = boards[cmp.Or(string(r.policyMode), issuefilter.Monitored)] // response names another rule board
		return
	}
	f.IsMalicious = r.malicious != 0
	f.Reachability = cmp.Or(reachabilities[string(r.exposure)], "no reachability analysis")
}

// showContent sets the fields that come from the content.
func (f *listed) showContent(c *storev1.FindingContent) {
	f.RuleMessage = c.Message
	f.Location, f.logical = c.Location, c.LogicalLocation
	f.SyntacticId = c.SyntacticId
	f.MatchBasedId = c.MatchBasedId
	f.ReviewComments = c.ReviewComments
	f.ExternalTicket = c.ExternalTicket
	switch f.IssueType {
	case vocabulary.AISAST:
		f.AiImpact = c.AiImpact
		fallthrough
	case vocabulary.SAST:
		f.Assistant = c.Assistant
		f.ClickToFixPrs = c.ClickToFixPrs
		f.ClickToFixFailures = c.ClickToFixFailures
	case vocabulary.SCA:
		f.Assistant = c.Assistant
		f.lockfile, f.lockfileLine = blob.Lockfile(c)
		f.committedAt = c.CommittedAt
		f.FixRecommendations = c.FixRecommendations
		// The key lockfile_line_url must be present (contract facts 2.4).
		f.FoundDependency = cmp.Or(c.FoundDependency, unknownDependency)
		f.ReachableCondition = c.ReachableCondition
		if f.Usage = c.Usage; f.Usage != nil {
			f.Usage.ExternalTicket = c.ExternalTicket
		}
		f.VulnerabilityIdentifier = c.VulnerabilityIdentifier
	}
}

// showLogical shows the logical location as the place of a finding without a file.
func (f *listed) showLogical() {
	if f.logical == "" {
		return
	}
	if f.Location == nil {
		f.Location = &findingsv1.FindingLocation{}
	}
	f.Location.LogicalLocation, f.Location.FilePath = f.logical, cmp.Or(f.Location.FilePath, f.logical)
}

// explain shows the help of the rule as its explanation. The rule's own help is better than a model's text.
func (f *listed) explain(help *findingsv1.Assistant) {
	switch {
	case help == nil || f.IssueType != vocabulary.SAST && f.IssueType != vocabulary.AISAST:
	case f.Assistant == nil:
		f.Assistant = help
	default:
		f.Assistant.RuleExplanation = help.GetRuleExplanation()
	}
}

// showDependency sets the links of a dependency, and what is known about exploits of its vulnerability.
func (f *listed) showDependency(links codehost.Repository, exploits exploit.Known) {
	f.EpssScore, f.KnownExploit = exploits.Score(f.VulnerabilityIdentifier), exploits.Exploit(f.VulnerabilityIdentifier)
	if f.FoundDependency != unknownDependency {
		f.FoundDependency.LockfileLineUrl = links.Line(f.commit, f.lockfile, max(f.lockfileLine, 1))
	}
	if used := f.Usage.GetLocation(); used != nil {
		used.Url = links.Line(f.commit, used.GetFilePath(), used.GetLine())
		if f.committedAt != 0 {
			used.CommittedAt = timestamppb.New(store.Time(f.committedAt))
		}
	}
}

// showMessages lets the messages of the finding and of its rule stand in for each other: reports may have only one of
// them. The rule is shared, so a change needs a copy.
func (f *listed) showMessages() {
	switch rule := f.Rule; {
	case f.RuleMessage == "":
		f.RuleMessage = rule.GetMessage()
	case rule.GetMessage() == "":
		f.Rule = &findingsv1.FindingRule{
			Name: rule.GetName(), Message: f.RuleMessage, Confidence: rule.GetConfidence(), Category: rule.GetCategory(),
			Subcategories: rule.GetSubcategories(), VulnerabilityClasses: rule.GetVulnerabilityClasses(),
			CweNames: rule.GetCweNames(), OwaspNames: rule.GetOwaspNames(),
		}
	}
}

// at sets t to a time in microseconds since 1970.
func at(t *timestamppb.Timestamp, micros number) *timestamppb.Timestamp {
	t.Seconds, t.Nanos = int64(micros/1e6), int32(micros%1e6*1000)
	if t.Nanos < 0 {
		t.Seconds, t.Nanos = t.Seconds-1, t.Nanos+1e9
	}
	return t
}

// advisories are the advisories of the supply-chain findings. A page may have rows of several issue types.
func (p *pageRows) advisories() (list []string) {
	for _, f := range p.rows {
		if f.IssueType == vocabulary.SCA {
			list = append(list, f.VulnerabilityIdentifier)
		}
	}
	return list
}

// response returns the page as a message. rules and projects are the entries of its rows.
func (p *pageRows) response(rules, projects catalogEntries, exploits exploit.Known) *findingsv1.ListFindingsResponse {
	response := &findingsv1.ListFindingsResponse{Findings: make([]*findingsv1.Finding, len(p.rows))}
	for i, f := range p.rows {
		rule, project := rules[i], projects[i]
		f.Rule, f.RuleName = rule.rule, rule.rule.GetName()
		f.Confidence, f.Categories = rule.rule.GetConfidence(), rule.categories
		f.Repository = project.repository
		if board := project.boards[f.IssueType]; board != nil && f.SourcingPolicy != nil {
			f.SourcingPolicy = board
		}
		f.explain(rule.assistant)
		if path := f.Location.GetFilePath(); project.links.Known() && path != "" && f.commit != "" {
			f.LineOfCodeUrl = project.links.Line(f.commit, path, f.Location.GetLine())
		}
		if f.IssueType == vocabulary.SCA {
			f.showDependency(project.links, exploits)
		}
		f.showMessages()
		f.showLogical()
		response.Findings[i] = &f.Finding
	}
	return response
}
