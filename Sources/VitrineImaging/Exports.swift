@_exported import VitrineImageCore
@_exported import VitrineWorkers
