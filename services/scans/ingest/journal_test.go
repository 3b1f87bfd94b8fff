package ingest

import (
	"reflect"
	"testing"

	"github.com/palisade/palisade/services/internal/spool"
)

// A column that a result does not bring through the journal would be stored empty, and nothing else would report it.
func TestJournalKeepsEveryColumn(t *testing.T) {
	of := &group{Analysis: Analysis{Tool: "test"}}
	want := &Result{Rule: &Rule{Name: "rule"}, of: of, ruleName: "rule"}
	value := reflect.ValueOf(want).Elem()
	columns := 0
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		switch field.Type.Kind() {
		case reflect.String:
			value.Field(i).SetString("of " + field.Name)
		case reflect.Bool:
			value.Field(i).SetBool(true)
		default: // the analysis, the rule and the content
			continue
		}
		columns++
	}
	if columns < 11 {
		t.Fatalf("only %d columns were filled", columns)
	}
	j := newJournal(spool.Space{})
	defer j.close()
	j.add(want)
	j.spill.seal()
	read := 0
	err := j.each(func(*group) (int, bool) { return 0, true }, func(got *Result) error {
		read++
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() && (field.Type.Kind() == reflect.String || field.Type.Kind() == reflect.Bool) {
				if !reflect.DeepEqual(reflect.ValueOf(got).Elem().Field(i).Interface(), value.Field(i).Interface()) {
					t.Errorf("%s is %v after the journal, want %v: add it to texts or bits", field.Name, reflect.ValueOf(got).Elem().Field(i), value.Field(i))
				}
			}
		}
		return nil
	})
	if err != nil || read != 1 {
		t.Errorf("%d results were read: %v", read, err)
	}
}
