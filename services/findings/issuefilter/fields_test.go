package issuefilter_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/migrate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
)

// The table of fields names fields of the filter, and indexes that begin with the column and are in the order of lists.
func TestFieldsHaveTheirIndexes(t *testing.T) {
	known := (&findingsv1.IssuesFilter{}).ProtoReflect().Descriptor().Fields()
	indexes := map[string][]string{}
	for _, table := range migrate.Tables {
		for _, index := range table.Indexes {
			if table.Name == finding.Table {
				indexes[index.Name] = append(indexes[index.Name], index.Columns...)
			}
		}
	}
	seen := map[string]bool{}
	for _, field := range issuefilter.Fields {
		for _, name := range field.Names {
			if known.ByJSONName(name) == nil || seen[name] {
				t.Errorf("%s: IssuesFilter has no such field, or it is twice in the table", name)
			}
			seen[name] = true
		}
		of := slices.DeleteFunc(slices.Clone(indexes[field.Index]), func(c string) bool { return c == finding.FieldDeploymentID || c == finding.FieldIssueType })
		if field.Use == issuefilter.Ordering {
			of = append([]string{field.Column}, of...)
		}
		if len(of) < 3 || of[0] != field.Column || of[1] != finding.FieldRelevantSince {
			t.Errorf("%s: the index %s has %v", field.Column, field.Index, indexes[field.Index])
		}
		if use, ok := issuefilter.UseOf(field.Column); !ok || use != field.Use {
			t.Errorf("%s: got %v", field.Column, use)
		}
	}
	var without []protoreflect.Name
	for i := range known.Len() {
		if f := known.Get(i); !seen[f.JSONName()] {
			without = append(without, f.Name())
		}
	}
	want := []protoreflect.Name{ // checked on the findings that other fields select, looked up by id, or without effect
		"ids", "status", "issue_parent_ids", "on_primary_branch", "time_filter", "include_ticketed", "backlog_type",
	}
	for _, name := range want {
		if !slices.Contains(without, name) {
			t.Errorf("%s has an index", name)
		}
	}
}
