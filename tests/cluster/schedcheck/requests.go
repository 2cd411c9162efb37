// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// request is one line of stdin. Pods are named "namespace/name".
//
// With "objects" the cluster is these from now on; without, it is that of the last request that had them. Nothing else
// outlives a request.
//
// "remove" names nodes that are being taken out of service: they stay as nodes, unschedulable and with GhostTaints, as
// they do until their machines are gone; nothing may be placed on them. The pods of "placements" and "pods" leave the
// nodes on which they are; all other pods stay and count, but for those of "off", which are nowhere then. Each is placed
// as the fresh pod that its controller would make: the same but for uid, status, deletion and node.
//
// "check": each of "placements" in its order has to pass the scheduler's PreFilter and Filter on its node, those before
// it being there already. Answer: ok, or the first that does not, with what the scheduler says about it.
//
// "can": after "placements" (as with check), the pods of "pods" are placed in their order, again and again as long as
// that places any (a pod may need another one's nearness), once for each of "ways", which say which of the feasible
// nodes a pod gets: "first" by name; "free", the one with the greatest least share of CPU or memory free afterwards;
// "random:SEED". Nodes of "exclude" are not used. Answer: ok, and each way's placements and unplaced pods.
type request struct {
	ID         json.RawMessage `json:"id"`
	Ask        string          `json:"ask"`
	Objects    *objects        `json:"objects"`
	Remove     []string        `json:"remove"`
	Taints     []v1.Taint      `json:"ghostTaints"` // default: those that a coordinator and the scheduler put there
	Placements []placement     `json:"placements"`
	Pods       []string        `json:"pods"`
	Off        []string        `json:"off"`
	Ways       []string        `json:"ways"` // default: first, free
	Exclude    []string        `json:"exclude"`
}

type objects struct {
	Nodes                []*v1.Node                      `json:"nodes"`
	Pods                 []*v1.Pod                       `json:"pods"`
	Claims               []*v1.PersistentVolumeClaim     `json:"pvcs"`
	Volumes              []*v1.PersistentVolume          `json:"pvs"`
	Namespaces           []*v1.Namespace                 `json:"namespaces"`
	Services             []*v1.Service                   `json:"services"`
	StorageClasses       []*storagev1.StorageClass       `json:"storageclasses"`
	CSINodes             []*storagev1.CSINode            `json:"csinodes"`
	CSIDrivers           []*storagev1.CSIDriver          `json:"csidrivers"`
	CSIStorageCapacities []*storagev1.CSIStorageCapacity `json:"csistoragecapacities"`
	VolumeAttachments    []*storagev1.VolumeAttachment   `json:"volumeattachments"`
}

type placement struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

type answer struct {
	ID    json.RawMessage   `json:"id,omitempty"`
	Error string            `json:"error,omitempty"` // the request made no sense; nothing else is said then
	OK    bool              `json:"ok"`
	Pod   string            `json:"pod,omitempty"` // check: the pod that does not fit, where, and who says so
	Node  string            `json:"node,omitempty"`
	Plug  string            `json:"plugin,omitempty"`
	Why   string            `json:"reason,omitempty"`
	Ways  map[string]*found `json:"ways,omitempty"`
}

// found is what one way of placing has come to.
type found struct {
	Placed     bool        `json:"placed"` // all of them
	Placements []placement `json:"placements"`
	Unplaced   []unplaced  `json:"unplaced"`
}

type unplaced struct {
	Pod     string         `json:"pod"`
	Reasons map[string]int `json:"reasons"` // "PLUGIN: what it says" -> on how many nodes
}

var ghostTaints = []v1.Taint{
	{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule},
	{Key: "vesper.sh/disrupted", Effect: v1.TaintEffectNoSchedule},
}

func (s *scheduler) answer(line []byte) (a *answer) {
	var r request

	a = &answer{}
	if err := json.Unmarshal(line, &r); err != nil {
		a.Error = err.Error()
		return a
	}
	a.ID = r.ID
	if err := s.do(&r, a); err != nil {
		*a = answer{ID: r.ID, Error: err.Error()}
	}
	return a
}

func (s *scheduler) do(r *request, a *answer) error {
	if r.Objects != nil {
		if err := s.load(r.Objects); err != nil {
			return err
		}
	}
	switch r.Ask {
	case "load":
		a.OK = true
		return nil
	case "check", "can":
	default:
		return fmt.Errorf("no such ask: %q", r.Ask)
	}

	t := s.newTrial()
	defer t.undo()

	taints := r.Taints
	if taints == nil {
		taints = ghostTaints
	}
	for _, name := range r.Remove {
		if err := t.remove(name, taints); err != nil {
			return err
		}
	}
	for _, name := range r.Exclude {
		t.excluded.Insert(name)
	}
	for _, p := range r.Placements {
		if err := t.takeOff(p.Pod); err != nil {
			return err
		}
	}
	for _, pods := range [][]string{r.Pods, r.Off} {
		for _, pod := range pods {
			if err := t.takeOff(pod); err != nil {
				return err
			}
		}
	}
	if err := t.check(r.Placements, a); err != nil || !a.OK || r.Ask == "check" {
		return err
	}

	ways := r.Ways
	if ways == nil {
		ways = []string{"first", "free"}
	}
	a.Ways = map[string]*found{}
	for _, name := range ways {
		way, err := newWay(name)
		if err != nil {
			return err
		}
		before := len(t.undos)
		if a.Ways[name], err = t.place(r.Pods, way); err != nil {
			return err
		}
		t.undoTo(before)
	}
	return nil
}
