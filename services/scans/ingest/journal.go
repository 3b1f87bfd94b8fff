package ingest

import (
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/scans/scanner"
)

// maxJournal is how many bytes of results stay in memory: about 10,000 typical results.
const maxJournal = 8 << 20

// maxRules limits the rules that the results of a report may name in each group. It equals the limit for scanners, so
// that a job can store what a scanner was allowed to send. Tools have far fewer rules. They stay in memory until the
// results are stored.
var maxRules = scanner.DefaultLimits().MaxRules

// errManyRules rejects reports with more rules.
var errManyRules = apierr.TooLarge("the results name more than %d rules, the limit for one report: "+
	"a ruleId has to identify the check, not the result; split the report, or use rule names that results share", maxRules)

// journal spools the results of a report in their stored form, from reading until matching has found out which of them
// have to be written. So a report is parsed and its results are encoded only once.
type journal struct {
	spill    *spill
	rules    []*ruleUse
	known    map[ruleUseKey]int
	interned map[string]string // interned strings
}

// ruleUse is a rule that results of a group name.
type ruleUse struct {
	of   *group
	rule *Rule
	name string // current name
	id   int64
	// hashed is the rule id that went into the content hashes of the results.
	hashed int64
}

// ruleUseKey identifies a rule by its name in the report and its current name. The first result of each key adds the
// rule.
type ruleUseKey struct {
	of             *group
	reported, name string
}

func newJournal(space spool.Space) *journal {
	return &journal{spill: newSpill(space, maxJournal), known: map[ruleUseKey]int{}, interned: map[string]string{}}
}

// The bits of a record.
const (
	bitSuppressed = 1 << iota
	bitOwnID
	bitHistorical
	bitMalicious
	bitTimed
	bitIgnored
	bitOwnSyntax
)

// add appends a record: its size, its rule, the bits and the texts.
func (j *journal) add(i *Result) {
	key := ruleUseKey{i.of, i.Rule.Name, i.ruleName}
	use, known := j.known[key]
	if !known {
		use = len(j.rules)
		j.known[key] = use
		j.rules = append(j.rules, &ruleUse{of: i.of, rule: i.Rule, name: i.ruleName, id: i.ruleID, hashed: i.ruleID})
	}
	start := len(j.spill.open)
	b := append(j.spill.open, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(use))
	b = append(b, i.bits())
	b = binary.LittleEndian.AppendUint64(b, uint64(i.contentHash))
	for _, text := range i.texts() {
		b = binary.AppendUvarint(b, uint64(len(*text)))
		b = append(b, *text...)
	}
	b = append(b, i.encoded...)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	if j.spill.open = b; len(b) >= partSize {
		j.spill.seal()
	}
}

// texts returns the fields of a record without the content. Fields from uniqueTexts on differ from result to result.
func (i *Result) texts() [10]*string {
	return [...]*string{
		&i.Product, &i.Severity, &i.Exposure, &i.Transitivity, &i.ValidationState, &i.PolicyMode,
		&i.Package, &i.Advisory, &i.path, &i.initialFingerprint,
	}
}

const uniqueTexts = 6

func (i *Result) bits() (bits byte) {
	for n, set := range [...]bool{i.Suppressed, i.ownID, i.Historical, i.Malicious, i.timed, i.ignored, i.ownSyntax} {
		if set {
			bits |= 1 << n
		}
	}
	return bits
}

var errJournal = errors.New("the journal of results is corrupt")

// each yields the results that wanted selects, with their group and index, but without their content: see load.
func (j *journal) each(wanted func(of *group) (result int, ok bool), yield func(*Result) error) error {
	var buffer []byte
	for n := range j.spill.parts {
		part := j.spill.part(n, &buffer)
		if j.spill.failed != nil {
			return j.spill.failed
		}
		for len(part) >= 4 {
			size := 4 + int(binary.LittleEndian.Uint32(part))
			if size > len(part) {
				return errJournal
			}
			record := part[4:size]
			part = part[size:]
			use, width := binary.Uvarint(record)
			if width <= 0 || use >= uint64(len(j.rules)) {
				return errJournal
			}
			result, ok := wanted(j.rules[use].of)
			if !ok {
				continue
			}
			i := &Result{result: result}
			if !j.decode(i, j.rules[use], append([]byte(nil), record[width:]...)) {
				return errJournal
			}
			if err := yield(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode reads a record. The result keeps a reference to it.
func (j *journal) decode(i *Result, use *ruleUse, record []byte) bool {
	if len(record) < 9 {
		return false
	}
	i.of, i.Group, i.Rule, i.ruleName, i.ruleID = use.of, use.of.Analysis, use.rule, use.name, use.id
	bits := record[0]
	i.Suppressed, i.ownID = bits&bitSuppressed != 0, bits&bitOwnID != 0
	i.Historical, i.Malicious, i.timed = bits&bitHistorical != 0, bits&bitMalicious != 0, bits&bitTimed != 0
	i.ignored, i.ownSyntax = bits&bitIgnored != 0, bits&bitOwnSyntax != 0
	i.contentHash = int64(binary.LittleEndian.Uint64(record[1:]))
	record = record[9:]
	for n, text := range i.texts() {
		size, width := binary.Uvarint(record)
		if width <= 0 || size > uint64(len(record)-width) {
			return false
		}
		record = record[width:]
		if n < uniqueTexts {
			*text = j.intern(record[:size])
		} else {
			*text = string(record[:size])
		}
		record = record[size:]
	}
	if i.encoded = record; use.id != use.hashed {
		i.contentHash = i.hash()
	}
	return true
}

// maxInterned bounds the interned strings. Normal reports have few.
const maxInterned = 1000

func (j *journal) intern(text []byte) string {
	word, known := j.interned[string(text)]
	if !known {
		word = string(text)
		if len(j.interned) < maxInterned {
			j.interned[word] = word
		}
	}
	return word
}

// load decodes the content of a result that came from the journal.
func (i *Result) load() error {
	if i.Content != nil {
		return nil
	}
	i.Content = &storev1.FindingContent{}
	return proto.Unmarshal(i.encoded, i.Content)
}

func (j *journal) close() {
	j.spill.close()
	j.rules, j.known, j.interned = nil, nil, nil
}
