import Foundation
import VitrineServer

print(ProcessingOptions().quality ?? 80)
