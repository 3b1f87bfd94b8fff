package services_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// queryLists says what each list of strings in a query holds: stored names, which may contain commas and need the
// option (palisade.options.v1.names), ids, or the contract's fixed words.
var queryLists = map[string]string{
	"findings.v1.ListFindingsRequest.autotriage_verdict":    "fixed words",
	"findings.v1.ListFindingsRequest.categories":            "names",
	"findings.v1.ListFindingsRequest.click_to_fix_pr_state": "fixed words",
	"findings.v1.ListFindingsRequest.component_tags":        "names",
	"findings.v1.ListFindingsRequest.confidence":            "fixed words",
	"findings.v1.ListFindingsRequest.exposures":             "fixed words",
	"findings.v1.ListFindingsRequest.issue_type":            "fixed words",
	"findings.v1.ListFindingsRequest.policies":              "fixed words",
	"findings.v1.ListFindingsRequest.ref":                   "names",
	"findings.v1.ListFindingsRequest.repos":                 "names",
	"findings.v1.ListFindingsRequest.rules":                 "names",
	"findings.v1.ListFindingsRequest.severities":            "fixed words",
	"findings.v1.ListFindingsRequest.status":                "fixed words",
	"findings.v1.ListFindingsRequest.transitivities":        "fixed words",
	"findings.v1.ListFindingsRequest.triage_reasons":        "fixed words",
	"findings.v1.ListSecretsRequest.repo":                   "names",
	"projects.v1.DeleteProjectTagsRequest.tags":             "names",
	"scans.v1.ListFreshnessRequest.state":                   "fixed words",
	"supplychain.v1.DependencyFilter.ecosystem":             "fixed words",
	"supplychain.v1.DependencyFilter.license":               "names",
	"supplychain.v1.DependencyFilter.transitivity":          "fixed words",
}

// A query parameter is split at commas, unless it is a list of names. So each list must say what it holds.
func TestQueryListsDecideAboutCommas(t *testing.T) {
	found := map[string]protoreflect.FieldDescriptor{}
	for _, rpc := range operations() {
		route := proto.GetExtension(rpc.descriptor.Options(), annotations.E_Http).(*annotations.HttpRule)
		for _, binding := range append([]*annotations.HttpRule{route}, route.GetAdditionalBindings()...) {
			switch {
			case binding == nil:
			case binding.GetBody() != "*":
				collectLists(rpc.descriptor.Input(), binding.GetBody(), found)
			case binding.GetDelete() != "": // the gateway joins its query and its body
				collectLists(rpc.descriptor.Input(), "", found)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		field := found[name]
		kind, known := queryLists[name]
		option := proto.GetExtension(field.Options(), optionsv1.E_Names).(bool)
		switch {
		case !known:
			t.Errorf("%s: say in queryLists whether it holds names, ids or fixed words", name)
		case option != (kind == "names"):
			t.Errorf("%s holds %s, but the option names is %t", name, kind, option)
		}
	}
	for name := range queryLists {
		if found[name] == nil {
			t.Errorf("%s is no list in a query", name)
		}
	}
}

// collectLists finds the lists of strings that a query can set, as the gateway does: through single messages.
func collectLists(message protoreflect.MessageDescriptor, body string, found map[string]protoreflect.FieldDescriptor) {
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if string(field.Name()) == body {
			continue
		}
		if field.IsList() && field.Kind() == protoreflect.StringKind {
			found[strings.TrimPrefix(string(field.FullName()), "palisade.")] = field
		}
		if inner := field.Message(); inner != nil && !field.IsList() && !field.IsMap() &&
			strings.HasPrefix(string(inner.FullName()), "palisade.") {
			collectLists(inner, "", found)
		}
	}
}
