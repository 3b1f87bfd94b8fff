package main

import (
	"testing"

	"pgregory.net/rapid"
)

func TestWalkWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deep := rapid.IntRange(1, 2*deepPage).Draw(t, "deep")
		size, last := walkWindows(deep)
		if size < 1 || size > walkWindow || last+size != deep+1 || last < size {
			t.Fatalf("page %d: windows of %d pages from 0 and from %d", deep, size, last)
		}
	})
	if size, last := walkWindows(deepPage); size != walkWindow || last != deepPage-walkWindow+1 {
		t.Errorf("page %d: windows of %d pages from 0 and from %d", deepPage, size, last)
	}
}
