package etcdstore

import (
	"slices"
	"sort"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"
)

// shelf is sorted keys that answer as etcd does, and counts what etcd would.
type shelf struct {
	keys    []string
	counted int
}

func (s *shelf) page(in *stretch, limit int64) *clientv3.GetResponse {
	begin, end := sort.SearchStrings(s.keys, in.from), sort.SearchStrings(s.keys, in.end)
	found := s.keys[begin:max(begin, end)]
	s.counted += len(found)
	page := &clientv3.GetResponse{Count: int64(len(found)), More: int64(len(found)) > limit}
	for _, key := range found[:min(limit, int64(len(found)))] {
		page.Kvs = append(page.Kvs, &mvccpb.KeyValue{Key: []byte(key)})
	}
	return page
}

// read reads all keys as Load does, in pages of up to most, and counts the pages.
func (s *shelf) read(most int64) (got []string, pages int) {
	limit, at := min(most, pageFirst), newStretch("p/r/", "p/r0")
	for more := true; more; pages++ {
		page := s.page(at, limit)
		for _, kv := range page.Kvs {
			got = append(got, string(kv.Key))
		}
		more = at.follow(page, limit)
		limit = min(4*limit, most)
	}
	return got, pages
}

func TestStretches(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) string {
		return "p/r/" + rapid.StringOfN(rapid.RuneFrom([]rune("ab/0~")), 0, 8, -1).Draw(t, "key")
	})
	odd := rapid.Custom(func(t *rapid.T) string {
		return "p/r/" + string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 0xfe, 0xff}), 0, 5).Draw(t, "bytes"))
	})
	rapid.Check(t, func(t *rapid.T) {
		s := &shelf{keys: rapid.SliceOfN(rapid.OneOf(key, odd), 0, 300).Draw(t, "keys")}
		slices.Sort(s.keys)
		s.keys = slices.Compact(s.keys)
		got, _ := s.read(rapid.Int64Range(1, 20).Draw(t, "most"))
		if !slices.Equal(got, s.keys) {
			t.Fatalf("read %q of %q", got, s.keys)
		}
	})
}

// However many keys there are, reading them has each counted a few times, and takes few
// pages more than it must: also where many begin alike, and some are alone.
func TestStretchesAreFew(t *testing.T) {
	const each, most = 100_000, 2048
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	s := &shelf{}
	for i := range each {
		random, counted := uint64(i)*0x9e3779b97f4a7c15, []byte("p/r/session/0000000000")
		id := make([]byte, 10)
		for at := range id {
			id[at] = letters[random%62]
			random /= 62
		}
		for at, n := len(counted)-1, i; n > 0; at, n = at-1, n/10 {
			counted[at] = byte('0' + n%10)
		}
		s.keys = append(s.keys, "p/r/identity/"+string(id), string(counted))
	}
	s.keys = append(s.keys, "p/r/a/x", "p/r/config/x", "p/r/identity-type/x", "p/r/zone/x")
	slices.Sort(s.keys)
	got, pages := s.read(most)
	if !slices.Equal(got, s.keys) {
		t.Fatalf("read %d keys of %d, or others", len(got), len(s.keys))
	}
	if least := len(s.keys)/most + 1; pages > 4*least {
		t.Errorf("took %d pages, where %d are the least", pages, least)
	}
	if s.counted > 2*mostCounted*len(s.keys) {
		t.Errorf("had %d keys counted, %d times as many as there are", s.counted, s.counted/len(s.keys))
	}
	t.Logf("%d pages, each key counted %.1f times", pages, float64(s.counted)/float64(len(s.keys)))
}
