// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand"
	"sort"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// trial is one request's changes to the cluster; all of them are undone at its end.
type trial struct {
	*scheduler
	names    []string // nodes, sorted
	excluded sets.Set[string]
	off      sets.Set[string]
	undos    []func() error
}

func (s *scheduler) newTrial() *trial {
	return &trial{
		scheduler: s,
		names:     sets.List(sets.KeySet(s.nodes)),
		excluded:  sets.New[string](),
		off:       sets.New[string](),
	}
}

func (t *trial) undo() { t.undoTo(0) }

// undoTo undoes what was done last, until only so many changes are left. What fails there is a mistake of this program.
func (t *trial) undoTo(left int) {
	for len(t.undos) > left {
		last := len(t.undos) - 1
		if err := t.undos[last](); err != nil {
			panic(err)
		}
		t.undos = t.undos[:last]
	}
}

func (t *trial) later(f func() error) { t.undos = append(t.undos, f) }

func (t *trial) remove(name string, taints []v1.Taint) error {
	old := t.nodes[name]
	if old == nil {
		return fmt.Errorf("there is no node %s to remove", name)
	}
	if t.excluded.Has(name) {
		return fmt.Errorf("node %s is to be removed twice", name)
	}
	t.excluded.Insert(name)
	ghost := old.DeepCopy()
	ghost.Spec.Unschedulable = true
	for _, taint := range taints {
		if !hasTaint(ghost, taint) {
			ghost.Spec.Taints = append(ghost.Spec.Taints, taint)
		}
	}
	t.cache.UpdateNode(t.logger, old, ghost)
	t.later(func() error {
		t.cache.UpdateNode(t.logger, ghost, old)
		return nil
	})
	return nil
}

func hasTaint(node *v1.Node, taint v1.Taint) bool {
	for _, t := range node.Spec.Taints {
		if t.MatchTaint(&taint) {
			return true
		}
	}
	return false
}

func (t *trial) takeOff(name string) error {
	pod := t.pods[name]
	if pod == nil {
		return fmt.Errorf("there is no pod %s", name)
	}
	if t.off.Has(name) {
		return fmt.Errorf("pod %s is to be placed twice", name)
	}
	t.off.Insert(name)
	if !counts(pod) {
		return nil
	}
	if err := t.cache.RemovePod(t.logger, pod); err != nil {
		return err
	}
	t.later(func() error { return t.cache.AddPod(t.logger, pod) })
	return nil
}

// fresh is the pod that takes the place of one that has gone.
func (t *trial) fresh(name string) *v1.Pod {
	pod := t.pods[name].DeepCopy()
	pod.UID += types.UID("-fresh")
	pod.Spec.NodeName = ""
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
	pod.DeletionTimestamp = (*metav1.Time)(nil)
	pod.DeletionGracePeriodSeconds = nil
	return pod
}

// cycle is what the scheduler knows about one pod before it looks at nodes: a scheduling cycle.
type cycle struct {
	pod    *v1.Pod
	state  fwk.CycleState
	result *framework.PreFilterResult
	by     string      // the plugins that have narrowed the nodes down to result
	status *fwk.Status // not nil: the pod fits nowhere
}

func (t *trial) newCycle(pod *v1.Pod) (*cycle, error) {
	if err := t.cache.UpdateSnapshot(t.logger, t.snapshot); err != nil {
		return nil, err
	}
	c := &cycle{pod: pod, state: framework.NewCycleState()}
	result, status, by := t.framework.RunPreFilterPlugins(t.ctx, c.state, pod)
	c.result, c.by = result, strings.Join(sets.List(by), ",")
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
		}
		if status.Plugin() == "" {
			status.SetPlugin(c.by)
		}
		c.status = status
	}
	return c, nil
}

// filter answers nil, or why the pod may not be on the node.
func (t *trial) filter(c *cycle, name string) (*fwk.Status, error) {
	if c.status != nil {
		return c.status, nil
	}
	if !c.result.AllNodes() && !c.result.NodeNames.Has(name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			"node is filtered out by the prefilter result").WithPlugin(c.by), nil
	}
	node, err := t.snapshot.Get(name)
	if err != nil {
		return nil, err
	}
	status := t.framework.RunFilterPlugins(t.ctx, c.state, c.pod, node)
	if status.IsSuccess() {
		return nil, nil
	}
	if !status.IsRejected() {
		return nil, fmt.Errorf("pod %s/%s on node %s: %w", c.pod.Namespace, c.pod.Name, name, status.AsError())
	}
	return status, nil
}

// put has the pod on the node from here on, as the scheduler does between its decision and the binding.
func (t *trial) put(c *cycle, name string) error {
	pod := c.pod.DeepCopy()
	pod.Spec.NodeName = name
	if status := t.framework.RunReservePluginsReserve(t.ctx, c.state, pod, name); !status.IsSuccess() {
		return fmt.Errorf("pod %s/%s on node %s: %w", pod.Namespace, pod.Name, name, status.AsError())
	}
	if err := t.cache.AssumePod(t.logger, pod); err != nil {
		return err
	}
	t.later(func() error {
		t.framework.RunReservePluginsUnreserve(t.ctx, c.state, pod, name)
		return t.cache.ForgetPod(t.logger, pod)
	})
	return nil
}

func (t *trial) check(placements []placement, a *answer) error {
	for _, p := range placements {
		if t.nodes[p.Node] == nil {
			return fmt.Errorf("there is no node %s for pod %s", p.Node, p.Pod)
		}
		refused := &answer{ID: a.ID, Pod: p.Pod, Node: p.Node}
		if t.excluded.Has(p.Node) {
			refused.Why = "the node is being removed, or excluded"
			*a = *refused
			return nil
		}
		c, err := t.newCycle(t.fresh(p.Pod))
		if err != nil {
			return err
		}
		status, err := t.filter(c, p.Node)
		if err != nil {
			return err
		}
		if status != nil {
			refused.Plug = status.Plugin()
			refused.Why = status.Message()
			*a = *refused
			return nil
		}
		if err := t.put(c, p.Node); err != nil {
			return err
		}
	}
	a.OK = true
	return nil
}

// way is which one of the nodes on which a pod fits it gets.
type way struct {
	first  bool
	random *rand.Rand // nil: the freest
}

func newWay(name string) (*way, error) {
	switch name {
	case "first":
		return &way{first: true}, nil
	case "free":
		return &way{}, nil
	}
	if text, ok := strings.CutPrefix(name, "random:"); ok {
		seed, err := strconv.ParseInt(text, 10, 64)
		return &way{random: rand.New(rand.NewSource(seed))}, err
	}
	return nil, fmt.Errorf("no such way to place: %q", name)
}

func (t *trial) place(pods []string, w *way) (*found, error) {
	f := &found{Placements: []placement{}, Unplaced: []unplaced{}}
	left := pods
	for progress := true; progress && len(left) > 0; {
		var again []string
		f.Unplaced = f.Unplaced[:0]
		progress = false
		for _, name := range left {
			node, reasons, err := t.placeOne(name, w)
			if err != nil {
				return nil, err
			}
			if node == "" {
				again = append(again, name)
				f.Unplaced = append(f.Unplaced, unplaced{Pod: name, Reasons: reasons})
				continue
			}
			f.Placements = append(f.Placements, placement{Pod: name, Node: node})
			progress = true
		}
		left = again
	}
	f.Placed = len(left) == 0
	return f, nil
}

// placeOne answers the node, or "" and how many nodes refuse the pod for which reason.
func (t *trial) placeOne(name string, w *way) (string, map[string]int, error) {
	c, err := t.newCycle(t.fresh(name))
	if err != nil {
		return "", nil, err
	}
	var fit []string
	reasons := map[string]int{}
	for _, node := range t.names {
		if t.excluded.Has(node) {
			continue
		}
		status, err := t.filter(c, node)
		if err != nil {
			return "", nil, err
		}
		if status != nil {
			reasons[status.Plugin()+": "+status.Message()]++
			continue
		}
		fit = append(fit, node)
		if w.first {
			break
		}
	}
	if len(fit) == 0 {
		return "", reasons, nil
	}
	node := fit[0]
	if w.random != nil {
		node = fit[w.random.Intn(len(fit))]
	} else if !w.first {
		sort.SliceStable(fit, func(i, j int) bool { return t.share(c.pod, fit[i]) > t.share(c.pod, fit[j]) })
		node = fit[0]
	}
	return node, nil, t.put(c, node)
}

// share is the least share of the node's CPU or memory that is free once the pod is there.
func (t *trial) share(pod *v1.Pod, name string) float64 {
	info, err := t.snapshot.Get(name)
	if err != nil {
		return 0
	}
	node := info.(*framework.NodeInfo)
	needs := framework.NewNodeInfo(pod).Requested
	cpu := node.Allocatable.MilliCPU - node.Requested.MilliCPU - needs.MilliCPU
	memory := node.Allocatable.Memory - node.Requested.Memory - needs.Memory
	return min(float64(cpu)/float64(max(node.Allocatable.MilliCPU, 1)),
		float64(memory)/float64(max(node.Allocatable.Memory, 1)))
}
