package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// findingSelection has the flags that select findings.
type findingSelection struct {
	issueTypes, severities, confidences []string
	repos, refs, rules, packages, files []string
	ids                                 []int64
	status, since, filter               string
	primary                             bool
}

// triageSelection adds the flags that say what to set.
type triageSelection struct {
	findingSelection
	state, reason, note string
}

func (s *findingSelection) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&s.issueTypes, "issue-type", nil, "sast, sca, ai_sast, secrets (default: all)")
	fs.Int64SliceVar(&s.ids, "ids", nil, "ids of findings")
	fs.StringVar(&s.status, "status", "", "open, ignored, closed (fixed), reviewing, fixing or provisionally_ignored")
	fs.StringSliceVar(&s.severities, "severities", nil, "low, medium, high, critical")
	fs.StringSliceVar(&s.confidences, "confidence", nil, "low, medium, high")
	fs.StringArrayVar(&s.repos, "repos", nil, "project name; may be repeated")
	fs.StringArrayVar(&s.refs, "ref", nil, "branch or full ref; _default for the primary branch; may be repeated")
	fs.BoolVar(&s.primary, "primary", false, "only findings on the primary branch of their project")
	fs.StringArrayVar(&s.rules, "rules", nil, "rule name; may be repeated")
	fs.StringArrayVar(&s.packages, "packages", nil, "name of a dependency; may be repeated")
	fs.StringArrayVar(&s.files, "file", nil, "part of the path")
	fs.StringVar(&s.since, "since", "", "only findings relevant since this time: 7d, 2026-05-04, 2026-05-04T10:20:30Z or epoch seconds")
	fs.StringVar(&s.filter, "filter", "", "filter of the API (IssuesFilter) as `JSON`, or @file; the other flags narrow it further")
}

func (s *triageSelection) add(cmd *cobra.Command) {
	s.findingSelection.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&s.state, "state", "", "new state: ignored, reviewing, fixing, reopened or provisionally_ignored")
	fs.StringVar(&s.reason, "reason", "", "with --state ignored: acceptable_risk, false_positive, no_time, no_triage_reason or duplicate")
	fs.StringVar(&s.note, "note", "", "new note, up to 3000 characters")
}

// request builds the request. The server checks everything except the words of the flags.
func (s *triageSelection) request(now time.Time) (*findingsv1.PreviewBulkUpdateRequest, error) {
	if s.state == "" && s.note == "" {
		return nil, usagef("say what to set: --state, --note or both")
	}
	filter, types, err := s.selected(now)
	if err != nil {
		return nil, err
	}
	request := &findingsv1.PreviewBulkUpdateRequest{Filter: filter, IssueTypes: types, Params: &findingsv1.UpdateFindingParams{}}
	if s.note != "" {
		request.Params.Note = &s.note
	}
	if err := oneEnum(&request.Params.TriageState, "state", s.state, findingsv1.FindingTriageState_value, "FINDING_TRIAGE_STATE_"); err != nil {
		return nil, err
	}
	return request, oneEnum(&request.Params.TriageReason, "reason", s.reason, findingsv1.FindingTriageReason_value, "FINDING_TRIAGE_REASON_")
}

// selected returns the filter and the products of the flags.
func (s *findingSelection) selected(now time.Time) (*findingsv1.IssuesFilter, []findingsv1.IssueType, error) {
	filter, err := s.read()
	if err != nil {
		return nil, nil, err
	}
	filter.Ids, filter.Rules, filter.Dependencies = append(filter.Ids, s.ids...), append(filter.Rules, s.rules...), append(filter.Dependencies, s.packages...)
	filter.RepositoryNames, filter.Refs, filter.FilePaths = append(filter.RepositoryNames, s.repos...), append(filter.Refs, s.refs...), append(filter.FilePaths, s.files...)
	filter.OnPrimaryBranch = filter.GetOnPrimaryBranch() || s.primary
	if s.since != "" {
		seconds, err := parseMoment(s.since, now)
		if err != nil {
			return nil, nil, err
		}
		at, _ := strconv.ParseFloat(seconds, 64)
		filter.Since = timestamppb.New(time.UnixMicro(int64(at * 1e6)))
	}
	if filter.Severities, err = enums[findingsv1.Severity](filter.Severities, "severities", s.severities, findingsv1.Severity_value, "SEVERITY_"); err != nil {
		return nil, nil, err
	}
	if filter.Confidences, err = enums[findingsv1.Confidence](filter.Confidences, "confidence", s.confidences, findingsv1.Confidence_value, "CONFIDENCE_"); err != nil {
		return nil, nil, err
	}
	types, err := enums[findingsv1.IssueType](nil, "issue-type", s.issueTypes, findingsv1.IssueType_value, "ISSUE_TYPE_")
	if err != nil {
		return nil, nil, err
	}
	return filter, types, oneEnum(&filter.Tab, "status", s.status, findingsv1.IssueTab_value, "ISSUE_TAB_")
}

// read returns the filter of --filter.
func (s *findingSelection) read() (*findingsv1.IssuesFilter, error) {
	filter := &findingsv1.IssuesFilter{}
	if s.filter == "" {
		return filter, nil
	}
	text := []byte(s.filter)
	if name, isFile := strings.CutPrefix(s.filter, "@"); isFile {
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	if err := protojson.Unmarshal(text, filter); err != nil {
		return nil, usagef("--filter: %v", err)
	}
	return filter, nil
}

// enums adds the words of a flag to a list of enum values.
func enums[E ~int32](list []E, flag string, words []string, values map[string]int32, prefix string) ([]E, error) {
	for _, word := range words {
		var value E
		if err := oneEnum(&value, flag, word, values, prefix); err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

// oneEnum sets an enum value by the word of a flag. No word leaves it unchanged.
func oneEnum[E ~int32](into *E, flag, word string, values map[string]int32, prefix string) error {
	if word == "" {
		return nil
	}
	value := values[prefix+strings.ToUpper(word)]
	if value == 0 {
		return usagef("--%s: %q is unknown; see --help", flag, printable(word))
	}
	*into = E(value)
	return nil
}
