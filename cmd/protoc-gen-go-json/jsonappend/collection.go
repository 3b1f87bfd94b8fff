package jsonappend

import (
	"maps"
	"slices"
	"strconv"
)

// CloseObject ends an object. Its members were appended to b from start on, each with a leading comma; the first comma
// becomes the brace. So the code of a member does not depend on its position.
func CloseObject(b []byte, start int) []byte {
	if len(b) == start {
		return append(b, "{}"...)
	}
	b[start] = '{'
	return append(b, '}')
}

// closeArray is CloseObject for arrays.
func closeArray(b []byte, start int) []byte {
	if len(b) == start {
		return append(b, "[]"...)
	}
	b[start] = '['
	return append(b, ']')
}

// sample is the number of items after which the size of a long list is estimated.
const sample = 32

// List appends an array of the items, each written by item. A nil list is [], never null. Memory for a long list is
// allocated at once: growing step by step to a few megabytes would copy them repeatedly.
func List[T any](b []byte, items []T, item func([]byte, T) []byte) []byte {
	start := len(b)
	for i, v := range items {
		if i == sample {
			b = slices.Grow(b, (len(b)-start)/sample*(len(items)-sample)*9/8)
		}
		b = item(append(b, ','), v)
	}
	return closeArray(b, start)
}

// StringMap appends an object of the entries, sorted by key.
func StringMap[V any](b []byte, entries map[string]V, value func([]byte, V) []byte) []byte {
	start := len(b)
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		b = String(append(b, ','), k)
		b = value(append(b, ':'), entries[k])
	}
	return CloseObject(b, start)
}

// IntMap appends an object of the entries, sorted by numeric key.
func IntMap[K int32 | int64 | uint32 | uint64, V any](
	b []byte, entries map[K]V, value func([]byte, V) []byte,
) []byte {
	start := len(b)
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		b = append(b, ',', '"')
		if k < 0 {
			b = strconv.AppendInt(b, int64(k), 10)
		} else {
			b = strconv.AppendUint(b, uint64(k), 10)
		}
		b = value(append(b, '"', ':'), entries[k])
	}
	return CloseObject(b, start)
}

// BoolMap appends an object of at most two entries, false first.
func BoolMap[V any](b []byte, entries map[bool]V, value func([]byte, V) []byte) []byte {
	start := len(b)
	for _, k := range [...]bool{false, true} {
		v, present := entries[k]
		if !present {
			continue
		}
		b = append(b, ',', '"')
		b = strconv.AppendBool(b, k)
		b = value(append(b, '"', ':'), v)
	}
	return CloseObject(b, start)
}
