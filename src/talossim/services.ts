import type { DescService } from '@bufbuild/protobuf'
import { ClusterService } from '../../proto/gen/cluster/cluster_pb.ts'
import { State } from '../../proto/gen/cosi/resource/state_pb.ts'
import { InspectService } from '../../proto/gen/inspect/inspect_pb.ts'
import { DebugService } from '../../proto/gen/machine/debug_pb.ts'
import { ImageService } from '../../proto/gen/machine/image_pb.ts'
import { LifecycleService } from '../../proto/gen/machine/lifecycle_pb.ts'
import { LVMService } from '../../proto/gen/machine/lvm_pb.ts'
import { MachineService } from '../../proto/gen/machine/machine_pb.ts'
import { MDService } from '../../proto/gen/machine/md_pb.ts'
import { StorageService } from '../../proto/gen/storage/storage_pb.ts'
import { TimeService } from '../../proto/gen/time/time_pb.ts'

/** Every service that a machine of some version has. */
export const SERVICES: readonly DescService[] = [
  ...[MachineService, LifecycleService, ImageService, ClusterService, StorageService, TimeService, InspectService, State],
  ...[DebugService, LVMService, MDService],
]
