package main

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/palisade/palisade/services/config"
)

// filter is a query parameter of the findings list (specification, operation 11). Its flag has the same name with
// dashes. Only the server validates values, because it may be newer and know more of them.
type filter struct {
	name string // name of the query parameter
	kind filterKind
	doc  string
}

type filterKind int

const (
	list    filterKind = iota
	names              // a list of names, which may contain commas
	flagged            // true or false
	number
	moment
)

var filters = []filter{
	{"issue_type", list, "sast (default), sca, ai_sast"},
	{"since", moment, "only findings relevant since this time: 7d, 2026-05-04, 2026-05-04T10:20:30Z or epoch seconds"},
	{"page", number, "page, from 0"},
	{"page_size", number, "findings per page, 100 to 3000 (default 100)"},
	{"dedup", flagged, "collapse a finding that is on several refs into one row"},
	{"repos", names, "project names"},
	{"repository_ids", list, "project ids"},
	{"status", list, "open, fixed, ignored, reviewing, fixing, provisionally_ignored"},
	{"triage_reasons", list, "acceptable_risk, false_positive, no_time, no_triage_reason, duplicate; with --status ignored"},
	{"severities", list, "low, medium, high, critical"},
	{"ref", names, "branches or full refs; _default for the primary branch"},
	{"policies", list, "rule-board-audit, rule-board-pr-comments, rule-board-block (sast)"},
	{"rules", names, "rule names (sast)"},
	{"categories", names, "rule categories (sast)"},
	{"confidence", list, "low, medium, high (sast)"},
	{"autotriage_verdict", list, "true_positive, false_positive (sast)"},
	{"component_tags", names, "component tags"},
	{"exposures", list, "reachable, always_reachable, conditionally_reachable, unreachable, unknown (sca)"},
	{"transitivities", list, "direct, transitive, unknown (sca)"},
	{"is_malicious", flagged, "only malicious dependencies; with =false only other findings (sca)"},
	{"click_to_fix_pr_state", list, "open, merged (sast, sca)"},
}

func (f filter) flag() string { return strings.ReplaceAll(f.name, "_", "-") }

func addFilterFlags(fs *pflag.FlagSet) {
	for _, f := range filters {
		switch f.kind {
		case list:
			fs.StringSlice(f.flag(), nil, f.doc)
		case names: // the server splits them at commas, because it knows the names
			fs.StringArray(f.flag(), nil, f.doc)
		case flagged:
			fs.Bool(f.flag(), false, f.doc)
		case number:
			fs.Int(f.flag(), 0, f.doc)
		default:
			fs.String(f.flag(), "", f.doc)
		}
	}
}

// filterQuery returns the query for the given flags.
func filterQuery(fs *pflag.FlagSet, now time.Time) (url.Values, error) {
	query := url.Values{}
	for _, f := range filters {
		flag := fs.Lookup(f.flag())
		if !flag.Changed {
			continue
		}
		switch f.kind {
		case list, names:
			query[f.name] = valuesOf(flag)
		case moment:
			seconds, err := parseMoment(flag.Value.String(), now)
			if err != nil {
				return nil, err
			}
			query.Set(f.name, seconds)
		default:
			query.Set(f.name, flag.Value.String())
		}
	}
	return query, nil
}

// valuesOf returns the values of a flag that may be repeated.
func valuesOf(flag *pflag.Flag) []string {
	values, _ := flag.Value.(pflag.SliceValue)
	return values.GetSlice()
}

// parseMoment parses a time from the command line into the epoch seconds of the API.
func parseMoment(text string, now time.Time) (string, error) {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return epoch(t), nil
		}
	}
	if ago, err := config.ParseDuration(text); err == nil && ago > 0 {
		return epoch(now.Add(-ago)), nil
	}
	return "", usagef("--since: got %q, want a time ago (7d, 12h), a date (2026-05-04), a time (2026-05-04T10:20:30Z) or epoch seconds", printable(text))
}

func epoch(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', -1, 64)
}
