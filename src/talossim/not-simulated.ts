/** Methods that are there, with their rules of roles, and do nothing: the world has nothing for them to work on. By gRPC path, with what they say of it. */
export const NOT_SIMULATED: Readonly<Record<string, string>> = {
  '/machine.MachineService/PacketCapture': 'the simulation has no packets to capture',
  '/machine.ImageService/Import': 'the simulation imports no images',
  '/machine.ImageService/Verify': 'the simulation verifies no images',
  '/machine.DebugService/ContainerRun': 'the simulation has no machine.DebugService',
  '/machine.LVMService/LogicalVolumeRemove': 'the simulation has no machine.LVMService',
  '/machine.LVMService/VolumeGroupRemove': 'the simulation has no machine.LVMService',
  '/machine.LVMService/PhysicalVolumeRemove': 'the simulation has no machine.LVMService',
  '/machine.MDService/Destroy': 'the simulation has no machine.MDService',
}
