package services_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/ent"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// cursorNames and sizeNames are the names of the fields that pages have. Both may be inside messages.
var (
	cursorNames = []protoreflect.Name{"cursor", "page_token"}
	sizeNames   = []protoreflect.Name{"limit", "page_size", "optional_limit"}
)

// graphTasks pages the tasks inside a graph. TestJobGraphPages reads them.
const graphTasks = "/palisade.workflows.v1.WorkflowJobsService/GetWorkflowJobGraph"

// chatChannels has the cursor of the chat. TestChatAppInstallation reads them.
const chatChannels = "/palisade.notifications.v1.ChatAppService/ListChatAppChannels"

// pagedList is an RPC whose response has a cursor.
type pagedList struct {
	operation
	cursor, next, size []protoreflect.FieldDescriptor // of the request, the response, the request
	items              protoreflect.FieldDescriptor
}

// pagedLists are found in the protos, so that a new list is tested, too.
func pagedLists(t *testing.T) (lists []pagedList) {
	t.Helper()
	for _, rpc := range operations() {
		next := fieldNamed(rpc.descriptor.Output(), cursorNames)
		if next == nil || rpc.descriptor.IsStreamingServer() || rpc.name == graphTasks || rpc.name == chatChannels {
			continue
		}
		list := pagedList{operation: rpc, next: next}
		list.cursor, list.size = fieldNamed(rpc.descriptor.Input(), cursorNames), fieldNamed(rpc.descriptor.Input(), sizeNames)
		for i := range rpc.descriptor.Output().Fields().Len() {
			if d := rpc.descriptor.Output().Fields().Get(i); d.IsList() {
				list.items = d
				break
			}
		}
		if list.cursor == nil || list.size == nil || list.items == nil {
			t.Errorf("%s has a cursor, but its request has no cursor or size, or its response no list", rpc.name)
			continue
		}
		lists = append(lists, list)
	}
	return lists
}

// fieldNamed returns the path to a text or number with one of the names, in the message or in an inner message.
func fieldNamed(m protoreflect.MessageDescriptor, names []protoreflect.Name) []protoreflect.FieldDescriptor {
	for i := range m.Fields().Len() {
		d := m.Fields().Get(i)
		if slices.Contains(names, d.Name()) && d.Message() == nil && !d.IsList() {
			return []protoreflect.FieldDescriptor{d}
		}
		if d.Message() != nil && !d.IsList() && !d.IsMap() && (slices.Contains(names, d.Name()) || d.Name() == "options") {
			if inner := fieldNamed(d.Message(), append([]protoreflect.Name{"token"}, names...)); inner != nil {
				return append([]protoreflect.FieldDescriptor{d}, inner...)
			}
		}
	}
	return nil
}

func getAt(m protoreflect.Message, path []protoreflect.FieldDescriptor) protoreflect.Value {
	for _, d := range path[:len(path)-1] {
		m = m.Get(d).Message()
	}
	return m.Get(path[len(path)-1])
}

func setAt(m protoreflect.Message, path []protoreflect.FieldDescriptor, value protoreflect.Value) {
	for _, d := range path[:len(path)-1] {
		m = m.Mutable(d).Message()
	}
	m.Set(path[len(path)-1], value)
}

// numberFor is a number in the type of a field.
func numberFor(d protoreflect.FieldDescriptor, n int) protoreflect.Value {
	if d.Kind() == protoreflect.Int32Kind {
		return protoreflect.ValueOfInt32(int32(n))
	}
	return protoreflect.ValueOfInt64(int64(n))
}

func (l *pagedList) credential(f *filling) string {
	if slices.Contains(l.rule.GetSchemes(), optionsv1.Scheme_SCHEME_WEB_TOKEN) {
		return f.tenant.Token
	}
	return f.admin
}

// page reads a page over gRPC.
func (l *pagedList) page(t *testing.T, f *filling, request proto.Message) (items []string, next protoreflect.Value, hasMore bool) {
	t.Helper()
	response := dynamicpb.NewMessage(l.descriptor.Output())
	if err := f.server.Conn.Invoke(f.server.Context(t, l.credential(f)), l.name, request, response); err != nil {
		t.Fatalf("%s %v: %v", l.name, request, err)
	}
	list := response.Get(l.items).List()
	for i := range list.Len() {
		if d := l.items.Message(); d != nil && d.Fields().ByName("last_used_at") != nil {
			list.Get(i).Message().Clear(d.Fields().ByName("last_used_at")) // this request sets it
		}
		items = append(items, list.Get(i).String())
	}
	next = getAt(response, l.next)
	hasMore = isSet(next)
	if d := l.descriptor.Output().Fields().ByName("has_more"); d != nil {
		hasMore = response.Get(d).Bool()
	}
	return items, next, hasMore
}

func isSet(cursor protoreflect.Value) bool { return cursor.String() != "" && cursor.String() != "0" }

// overHTTP requires that the page has an empty cursor in JSON.
func (l *pagedList) overHTTP(t *testing.T, f *filling, request *dynamicpb.Message) {
	t.Helper()
	path, query := l.path, url.Values{}
	request.Range(func(d protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if holder := "{" + string(d.Name()) + "}"; strings.Contains(path, holder) {
			path = strings.Replace(path, holder, url.PathEscape(value.String()), 1)
		} else if d.Message() == nil && !d.IsList() {
			query.Set(string(d.Name()), value.String())
		}
		return true
	})
	body := ""
	if l.method == "GET" {
		path += "?" + query.Encode()
	} else {
		encoded, err := protojson.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		body = string(encoded)
	}
	answer := f.server.Do(t, l.credential(f), l.method, path, body)
	var found map[string]any
	if err := json.Unmarshal([]byte(answer.Body), &found); answer.Status != 200 || err != nil {
		t.Fatalf("%s %s: %d %s", l.method, path, answer.Status, answer.Body)
	}
	cursor := found[l.next[0].JSONName()]
	for _, d := range l.next[1:] {
		inner, _ := cursor.(map[string]any)
		cursor = inner[d.JSONName()]
	}
	if words := []any{"", "0", float64(0)}; !slices.Contains(words, cursor) && (cursor != nil || len(l.next) == 1) {
		t.Errorf("%s %s: the last page has the cursor %v: %s", l.method, path, cursor, answer.Body)
	}
}

// TestCursorsEnd reads every list that has a cursor page by page. The last page has an empty cursor, or 0, also if it
// is full. Clients loop for ever otherwise.
func TestCursorsEnd(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		f := newFilling(t, s, "ours", 1, 12)
		remove := fmt.Sprintf("UPDATE findings SET state = 'removed', status = 'removed' WHERE id > %d", f.base+6)
		if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { return s.Store.Exec(ctx, tx, remove) }); err != nil {
			t.Fatal(err)
		}
		lists := pagedLists(t)
		for _, l := range lists {
			bare := f.lists(t, l.operation)["nothing"]
			whole := proto.CloneOf(bare)
			setAt(whole, l.size, numberFor(l.size[len(l.size)-1], 100))
			all, next, _ := l.page(t, f, whole)
			if isSet(next) {
				t.Errorf("%s: one page has all %d items, and the cursor %v", l.name, len(all), next)
			}
			if len(all) < 2 && !slices.Contains(emptyLists, l.name) {
				t.Errorf("%s shows %d items where there are more: say in rpc_requests_test.go how to see them", l.name, len(all))
			}
			for _, size := range []int{1, 2, max(1, len(all))} {
				l.walk(t, f, bare, all, size)
			}
		}
		t.Logf("%d lists have a cursor", len(lists))
	})
}

// emptyLists show fewer than two items here.
var emptyLists = []string{
	"/palisade.reporting.v1.MalwareFirewallReportsService/GetMalwareFirewallBlockedMalDepsByEcosystemReport", // there is one ecosystem
	"/palisade.scans.v1.HeldClosesService/GetHeldCloses",                                                     // their findings are in a packed column
	"/palisade.reporting.v1.ReportsService/GetReportFindings",                                                // the findings have no history
}

// walk reads a list in pages of a size.
func (l *pagedList) walk(t *testing.T, f *filling, bare *dynamicpb.Message, all []string, size int) {
	t.Helper()
	request := proto.CloneOf(bare)
	setAt(request, l.size, numberFor(l.size[len(l.size)-1], size))
	var got []string
	pages := max(1, (len(all)+size-1)/size)
	for n := 1; n <= pages; n++ {
		items, next, hasMore := l.page(t, f, request)
		got = append(got, items...)
		if last := n == pages; isSet(next) == last || hasMore == last {
			t.Errorf("%s: page %d of %d, by %d, has %d items, the cursor %v, and more: %t", l.name, n, pages, size, len(items), next, hasMore)
			return
		}
		if n == pages {
			l.overHTTP(t, f, request)
			break
		}
		setAt(request, l.cursor, next)
	}
	if fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("%s by %d: %d items, want %d:\n%v\n%v", l.name, size, len(got), len(all), got, all)
	}
}
