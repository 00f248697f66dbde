@_exported import VitrineCore
@_exported import VitrineImaging
