package scans

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scanpayload"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanner"
	"github.com/palisade/palisade/services/scans/watch"
)

// nosemReason is the reason of a finding that a comment in the code mutes.
const nosemReason = "ignored via nosemgrep"

// failedPartial is why a scan of some rules closes nothing: findings of the other rules may still be there.
const failedPartial = watch.Limited

// failedEmpty is why results without any rule that ran close nothing.
const failedEmpty = "no rule was run"

// failedUnfinished is why a scan closes nothing if its scanner did not report its end: what the scan could not look
// at is unknown.
const failedUnfinished = "the scanner did not report the end of the scan"

// failedLeftOut is why a scan closes nothing if some of its findings could not be kept: it is unknown which ones.
const failedLeftOut = "some findings could not be stored"

// scannerResults provides the stored results of a scanner.
type scannerResults struct {
	db       *ent.Client
	scan     *ent.Scan
	kept     *storev1.ScannerScan
	messages map[string]string // messages of the deployment's rules, as written
	secrets  map[string]string // messages of the rules that look for secrets
	// quarantined are rules that the scan did not get, or may not have got, because they are in quarantine.
	quarantined []string

	rules    map[string]*knownRule
	coverage *storev1.ScannerCoverage // of the results, and of the completion
	// unresolved has the files with findings in subprojects with unresolved dependencies.
	unresolved []string
	previous   map[string]struct{} // rules that also ran in an older version
	// reported has the hashed ids of the reported findings (reportedKey), and whether the server decides if they block;
	// nil if they are not needed.
	reported map[uint64]bool
	decided  map[string]bool // rules that the server decides about
}

// knownRule is what the findings of a rule share.
type knownRule struct {
	metadata string
	parsed   scanner.Metadata
	rule     *ingest.Rule
}

func newScannerResults(ctx context.Context, db *ent.Client, row *ent.Scan, kept *storev1.ScannerScan) (*scannerResults, error) {
	messages, err := ruleMessages(ctx, db, "")
	if err != nil {
		return nil, err
	}
	secretRules, err := ruleMessages(ctx, db, vocabulary.Secrets)
	if err != nil {
		return nil, err
	}
	quarantined, err := ruleset.Quarantined(ctx, db)
	if err != nil {
		return nil, err
	}
	r := &scannerResults{
		db: db, scan: row, kept: kept, messages: messages, secrets: secretRules, rules: map[string]*knownRule{}, decided: map[string]bool{},
		quarantined: append(quarantined, kept.GetQuarantinedRules()...),
	}
	for _, name := range kept.GetDecidedRules() {
		r.decided[name] = true
	}
	return r, nil
}

// Each implements ingest.Source.
func (r *scannerResults) Each(ctx context.Context, yield func(*ingest.Result) error) error {
	r.coverage, r.previous = &storev1.ScannerCoverage{}, map[string]struct{}{}
	clear(r.reported)
	err := scanner.Read(&payload{ctx: ctx, db: r.db, scanID: r.scan.ID}, func(frame *storev1.ScannerFrame) error {
		if coverage := frame.GetCoverage(); coverage != nil {
			proto.Merge(r.coverage, coverage)
		}
		f := frame.GetFinding()
		if f == nil {
			return nil
		}
		about := r.ruleOf(f)
		if about.parsed.PreviousScan {
			r.previous[f.GetCheckId()] = struct{}{}
			return nil
		}
		i := r.toResult(f, about)
		if r.reported != nil && !f.GetIgnored() {
			r.reported[reportedKey(orWord(f.GetMatchBasedId(), i.Content.GetToolFingerprint()))] = r.decided[f.GetCheckId()]
		}
		return yield(i)
	})
	if err == nil {
		r.unresolved, err = r.unresolvedFiles(ctx)
	}
	return err
}

// reportedKey hashes the scanner's id of a finding: its match-based id, or the tool fingerprint from its syntactic
// id.
func reportedKey(id string) uint64 { return xxhash.Sum64String(id) }

// blockPolicy is the policy of rules in mode block.
const blockPolicy = "rule-board-block"

// gate decides whether the scan fails. Findings of monitored rules do not count.
func (r *scannerResults) gate(tx *ent.Tx, of *ent.Project, policies []remediation.Policy, stored *ingest.Summary) *gate {
	renamed := map[string]bool{}
	for _, path := range r.coverage.GetRenamedPaths() {
		renamed[path] = true
	}
	return &gate{
		Comparison: blocking.Comparison{DB: tx.Client(), Project: of, Scan: r.scan, MergeBase: r.kept.GetMergeBase(), Renamed: renamed},
		policies:   policies, older: len(stored.Older) > 0,
		reported: func(f *ent.Finding, content *storev1.FindingContent) (sighting, bool) {
			return r.sighting(f, content, stored)
		},
		findings: []predicate.Finding{finding.Tool(scannerTool), finding.PolicyModeNotNil(), finding.PolicyModeNEQ(blocking.Monitored)},
	}
}

// sighting looks up a stored finding among the reported ones.
func (r *scannerResults) sighting(f *ent.Finding, content *storev1.FindingContent, stored *ingest.Summary) (sighting, bool) {
	if id := content.GetMatchBasedId(); id != "" {
		if decided, ok := r.reported[reportedKey(id)]; ok {
			return sighting{matchBasedID: id, decided: decided}, true
		}
	}
	if fingerprint := content.GetToolFingerprint(); fingerprint != "" { // the scanner has no match-based id
		if decided, ok := r.reported[reportedKey(fingerprint)]; ok {
			return sighting{decided: decided}, true
		}
	}
	// An older scan leaves the content of the newer one, with other ids. The scanner itself fails because of
	// the rules that it decides about, so the others need no distinction.
	return sighting{decided: len(r.decided) > 0 && text(f.PolicyMode) == blockPolicy}, stored.Reported(f)
}

// unresolvedFiles returns the files of stored supply-chain findings below the skipped subprojects. The scanner could
// not resolve their dependencies, so it is unknown whether the findings are gone.
func (r *scannerResults) unresolvedFiles(ctx context.Context) ([]string, error) {
	if len(r.coverage.GetSkippedSubprojects()) == 0 {
		return nil, nil
	}
	files, err := r.db.Finding.Query().Where(finding.ProjectID(r.scan.ProjectID), finding.Ref(r.scan.Ref), finding.Tool(scannerTool),
		finding.IssueType(vocabulary.SCA), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted), finding.FilePathNotNil()).
		Unique(true).Select(finding.FieldFilePath).Strings(ctx)
	if err != nil {
		return nil, err
	}
	unresolved := make([]string, 0, len(files))
	for _, file := range files {
		below := func(subproject string) bool {
			dir := path.Clean(strings.TrimPrefix(subproject, "/"))
			if path.Ext(dir) != "" { // a lockfile or a manifest, not a directory
				dir = path.Dir(dir)
			}
			return dir == "." || file == dir || strings.HasPrefix(file, dir+"/")
		}
		if slices.ContainsFunc(r.coverage.GetSkippedSubprojects(), below) {
			unresolved = append(unresolved, file)
		}
	}
	return unresolved, nil
}

// The exit codes of a scan that did what it should.
const (
	exitOK       = 0
	exitFindings = 1
)

// Coverages implements ingest.Source. A full scan lists all existing files, a diff scan the scanned ones.
func (r *scannerResults) Coverages() (map[ingest.Analysis]*ingest.Coverage, error) {
	c := &ingest.Coverage{
		ScanCoverage: &storev1.ScanCoverage{
			RulesKnown: true, Rules: r.coverage.GetRuleIds(), FilesKnown: true, Files: r.coverage.GetSearchedPaths(),
			Skipped: r.coverage.GetSkippedPaths(), Renamed: r.coverage.GetRenamedPaths(), Unresolved: r.unresolved,
			FailedRules: r.coverage.GetFailedRules(), PartlyParsed: r.coverage.GetPartlyParsed(), ToolVersion: r.kept.GetCliVersion(),
			Failure: r.coverage.GetFailure(),
		},
		Products: withAI(r.kept.GetProducts()), ListsAll: r.scan.IsFullScan,
	}
	switch {
	case !r.kept.GetComplete():
		c.Failure = failedUnfinished
	case r.scan.ExitCode != exitOK && r.scan.ExitCode != exitFindings:
		c.Failure = fmt.Sprintf("the scanner ended with exit code %d", r.scan.ExitCode)
	case len(partialRules(r.scan)) > 0:
		c.Failure = failedPartial
	case len(r.kept.GetProducts()) == 0, len(r.coverage.GetRuleIds()) == 0:
		c.Failure = failedEmpty
	case len(r.kept.GetErrors()) > 0:
		c.Failure = failedLeftOut
	}
	for rule := range r.previous {
		c.FailedRules = append(c.FailedRules, rule)
	}
	c.FailedRules = append(c.FailedRules, r.quarantined...) // their findings stay
	slices.Sort(c.FailedRules)
	return map[ingest.Analysis]*ingest.Coverage{{Tool: scannerTool}: c}, nil
}

// withAI adds detection by AI to the products of a code scan: its rules are code rules, and their metadata says so.
func withAI(products []string) []string {
	if !slices.Contains(products, vocabulary.SAST) {
		return products
	}
	return append(slices.Clone(products), vocabulary.AISAST)
}

// ruleOf returns what the findings of a rule share. A scanner sends the same metadata with each of them.
func (r *scannerResults) ruleOf(f *storev1.ScannerFinding) *knownRule {
	known := r.rules[f.GetCheckId()]
	if known != nil && known.metadata == string(f.GetMetadata()) {
		return known
	}
	m := scanner.ParseMetadata(f.GetMetadata())
	known = &knownRule{string(f.GetMetadata()), m, &ingest.Rule{
		Name: f.GetCheckId(),
		Text: &findingsv1.FindingRule{
			Message: r.messages[f.GetCheckId()], Confidence: orWord(m.Confidence, unknownConfidence), Category: orWord(m.Category, "security"),
			Subcategories: m.Subcategories, VulnerabilityClasses: m.Classes, CweNames: m.CWE, OwaspNames: m.OWASP,
			HelpUri: m.URL, References: m.References, SecretType: m.SecretType, PublishedAt: optionalTime(m.PublishedAt),
		},
		Origin: m.Origin,
		Stub:   len(f.GetMetadata()) == 0,
	}}
	r.rules[f.GetCheckId()] = known
	return known
}

// product returns the product of a finding. It depends on supply-chain data, the rule's metadata, and the
// deployment's product for the rule.
func (r *scannerResults) product(f *storev1.ScannerFinding, m scanner.Metadata) string {
	_, secret := r.secrets[f.GetCheckId()]
	switch {
	case f.GetSca() != nil:
		return vocabulary.SCA
	case m.Product != "":
		return m.Product
	case secret:
		return vocabulary.Secrets
	}
	return vocabulary.SAST
}

// toResult converts a finding to a result.
func (r *scannerResults) toResult(f *storev1.ScannerFinding, about *knownRule) *ingest.Result {
	i := &ingest.Result{
		Group: ingest.Analysis{Tool: scannerTool}, Product: r.product(f, about.parsed), Severity: severityWord(f.GetSeverity()), Rule: about.rule,
		Content: &storev1.FindingContent{
			Location: &findingsv1.FindingLocation{FilePath: f.GetPath(), Line: f.GetLine(), Column: f.GetColumn(), EndLine: f.GetEndLine(), EndColumn: f.GetEndColumn()},
			Message:  f.GetMessage(), Snippet: f.GetSnippet(), SyntacticId: f.GetSyntacticId(), MatchBasedId: f.GetMatchBasedId(),
			PatternHash: f.GetPatternHash(), CodeHash: f.GetCodeHash(), FixedLines: f.GetFixedLines(), DataflowTrace: f.GetDataflowTrace(),
			Metadata: f.GetMetadata(), EngineKind: f.GetEngineKind(), IsBlocking: f.GetIsBlocking() || r.decided[f.GetCheckId()],
		},
		Suppressed: f.GetIgnored(), PolicyMode: about.parsed.Policy,
	}
	if f.GetMatchBasedId() == "" && f.GetSyntacticId() != "" {
		i.Content.ToolFingerprint = "syntactic_id:" + f.GetSyntacticId()
	}
	if f.GetIgnored() {
		i.Content.SuppressionReason = nosemReason
	}
	switch i.Product {
	case vocabulary.SCA:
		addDependency(i, f, about.parsed)
	case vocabulary.Secrets:
		addSecret(i, f)
	}
	return i
}

func optionalTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func addSecret(i *ingest.Result, f *storev1.ScannerFinding) {
	i.ValidationState = "no_validator"
	switch state := strings.ToLower(f.GetValidationState()); state {
	case "confirmed_valid", "confirmed_invalid", "validation_error":
		i.ValidationState = state
	}
	if f.GetHistoricalCommit() == "" {
		return
	}
	i.Historical, i.Content.HistoricalCommit, i.Content.HistoricalBlob = true, f.GetHistoricalCommit(), f.GetHistoricalBlob()
	if at := f.GetHistoricalAt(); at != 0 {
		i.Content.HistoricalCommitAt = timestamppb.New(store.Time(at))
	}
}

func addDependency(i *ingest.Result, f *storev1.ScannerFinding, m scanner.Metadata) {
	match, found := f.GetSca(), f.GetSca().GetDependency()
	i.Exposure, i.Malicious = scanner.Exposure(match, m), m.SCAKind == "malicious"
	i.Package, i.Transitivity = found.GetPackage(), orWord(found.GetTransitivity(), "unknown")
	i.Content.FoundDependency = &findingsv1.FoundDependency{
		Ecosystem: orWord(found.GetEcosystem(), "no_package_manager"), Package: found.GetPackage(), Version: found.GetVersion(), Transitivity: i.Transitivity,
	}
	i.Content.Lockfile, i.Content.LockfileLine, i.Content.Manifest = match.GetLockfile(), found.GetLineNumber(), found.GetManifestPath()
	i.Content.ReachableCondition = m.ReachableIf
	i.Content.VulnerabilityIdentifier = orWord(m.Advisory, f.GetCheckId())
	i.Advisory = strings.ToUpper(i.Content.VulnerabilityIdentifier)
	for _, fix := range m.Fixes {
		i.Content.FixRecommendations = append(i.Content.FixRecommendations, &findingsv1.FixRecommendation{Package: fix.Package, Version: fix.Version})
	}
	addUsage(i.Content, i.Exposure)
}

// addUsage says where the code uses a vulnerable dependency: the place of the finding, unless that is in the lockfile.
func addUsage(content *storev1.FindingContent, exposure string) {
	if at := content.GetLocation(); exposure == "reachable" && at.GetFilePath() != content.GetLockfile() {
		content.Usage = &findingsv1.Usage{Location: &findingsv1.UsageLocation{
			FilePath: at.GetFilePath(), Line: at.GetLine(), Column: at.GetColumn(), EndLine: at.GetEndLine(), EndColumn: at.GetEndColumn(),
			Path: at.GetFilePath(), StartLine: at.GetLine(), StartCol: at.GetColumn(), EndCol: at.GetEndColumn(),
		}}
	}
}

// severityWord is the severity for the scanner's number.
func severityWord(n int32) string {
	switch n {
	case 3:
		return vocabulary.SeverityCritical
	case 2:
		return vocabulary.SeverityHigh
	case 1:
		return vocabulary.SeverityMedium
	}
	return vocabulary.SeverityLow
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}

// payload reads the stored results of a scan, part by part.
type payload struct {
	ctx    context.Context
	db     *ent.Client
	scanID int64
	next   int32
	rest   []byte
}

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		row, err := p.db.ScanPayload.Query().Where(scanpayload.ScanID(p.scanID), scanpayload.PositionGTE(p.next)).
			Order(ent.Asc(scanpayload.FieldPosition)).First(p.ctx)
		if ent.IsNotFound(err) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, fmt.Errorf("read stored results: %w", err)
		}
		p.rest, p.next = row.Content, row.Position+1
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
