// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// scheduler is kube-scheduler's framework, made once, and the cluster that was loaded last.
type scheduler struct {
	ctx       context.Context
	logger    klog.Logger
	framework framework.Framework
	factory   *factory

	stopCache context.CancelFunc
	cache     internalcache.Cache
	snapshot  *internalcache.Snapshot

	nodes map[string]*v1.Node
	pods  map[string]*v1.Pod
}

func newScheduler(ctx context.Context) (*scheduler, error) {
	s := &scheduler{
		ctx:       ctx,
		logger:    klog.FromContext(ctx),
		factory:   newFactory(),
		stopCache: func() {},
		snapshot:  internalcache.NewEmptySnapshot(),
	}

	configuration, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := &configuration.Profiles[0]
	// Preemption comes after Filter. Claims of DynamicResources have a manager of their own, which is not made here.
	for _, name := range []string{names.DefaultPreemption, names.DynamicResources} {
		profile.Plugins.MultiPoint.Enabled = without(profile.Plugins.MultiPoint.Enabled, name)
	}
	s.framework, err = frameworkruntime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		frameworkruntime.WithInformerFactory(s.factory),
		frameworkruntime.WithClientSet(fake.NewClientset()),
		frameworkruntime.WithSnapshotSharedLister(&lister{s}),
		frameworkruntime.WithParallelism(1))
	if err != nil {
		return nil, err
	}
	return s, s.load(&objects{})
}

func without(list []config.Plugin, name string) []config.Plugin {
	var rest []config.Plugin
	for _, plugin := range list {
		if plugin.Name != name {
			rest = append(rest, plugin)
		}
	}
	return rest
}

// lister is the snapshot of the moment: the plugins are made once, and each cluster has a snapshot of its own.
type lister struct{ s *scheduler }

func (l *lister) NodeInfos() framework.NodeInfoLister       { return l.s.snapshot.NodeInfos() }
func (l *lister) StorageInfos() framework.StorageInfoLister { return l.s.snapshot.StorageInfos() }

// load makes the objects the cluster.
func (s *scheduler) load(o *objects) error {
	for _, err := range []error{
		replaceAll(s.factory, o.Nodes),
		replaceAll(s.factory, o.Pods),
		replaceAll(s.factory, o.Claims),
		replaceAll(s.factory, o.Volumes),
		replaceAll(s.factory, o.Namespaces),
		replaceAll(s.factory, o.Services),
		replaceAll(s.factory, o.StorageClasses),
		replaceAll(s.factory, o.CSINodes),
		replaceAll(s.factory, o.CSIDrivers),
		replaceAll(s.factory, o.CSIStorageCapacities),
		replaceAll(s.factory, o.VolumeAttachments),
	} {
		if err != nil {
			return err
		}
	}

	s.stopCache()
	ctx, stop := context.WithCancel(s.ctx)
	s.stopCache = stop
	s.cache = internalcache.New(ctx, 0, nil)
	s.snapshot = internalcache.NewEmptySnapshot()

	s.nodes = make(map[string]*v1.Node, len(o.Nodes))
	for _, node := range o.Nodes {
		if s.nodes[node.Name] != nil {
			return fmt.Errorf("two nodes are called %s", node.Name)
		}
		s.nodes[node.Name] = node
		s.cache.AddNode(s.logger, node)
	}
	s.pods = make(map[string]*v1.Pod, len(o.Pods))
	for _, pod := range o.Pods {
		key := pod.Namespace + "/" + pod.Name
		if s.pods[key] != nil {
			return fmt.Errorf("two pods are called %s", key)
		}
		if pod.UID == "" {
			return fmt.Errorf("pod %s has no uid", key)
		}
		s.pods[key] = pod
		if !counts(pod) {
			continue
		}
		if err := s.cache.AddPod(s.logger, pod); err != nil {
			return err
		}
	}
	return nil
}

// counts says whether the scheduler's cache has the pod: its informer leaves terminal ones out by a field selector.
func counts(pod *v1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}
